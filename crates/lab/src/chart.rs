//! Draws the figures of `anamnesis eval experiment --json` as a bar chart (SVG 1.1).

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{Result, at};

/// Draw the figures of `anamnesis eval experiment --json`
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The JSON file to read
    #[arg(value_name = "JSON")]
    input: PathBuf,
    /// The SVG file to write
    #[arg(value_name = "SVG")]
    output: PathBuf,
}

/// Runs `cargo xtask chart`.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result {
    let text = fs::read_to_string(&arguments.input).map_err(at(&arguments.input))?;
    let svg = before_and_after(&bars(&serde_json::from_str(&text)?));
    fs::write(&arguments.output, svg).map_err(at(&arguments.output))
}

/// The figures to draw: name, place in the JSON, whether it is a number of tokens.
const FIGURES: [(&str, &str, bool); 9] = [
    ("found among the first 1", "/recall/recall_at/1", false),
    ("found among the first 3", "/recall/recall_at/3", false),
    ("found among the first 5", "/recall/recall_at/5", false),
    ("found among the first 8", "/recall/recall_at/8", false),
    ("MRR", "/recall/mrr", false),
    ("injected", "/unasked/given", false),
    ("unrelated and injected", "/unasked/unrelated", false),
    ("a session starts with", "/working_set/mean_tokens", true),
    ("all notes", "/working_set/corpus_tokens", true),
];

/// The bars to draw: shares as they are, tokens relative to the larger value.
fn bars(json: &Value) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (name, place, is_tokens) in FIGURES {
        let figures = ["before", "after"].map(|side| json[side].pointer(place)?.as_f64());
        if figures == [None, None] {
            continue;
        }
        let values = figures.map(Option::unwrap_or_default);
        let most = if is_tokens {
            values[0].max(values[1]).max(1.0)
        } else {
            1.0
        };
        let label = |figure: Option<f64>| match figure {
            None => "-".to_owned(),
            Some(tokens) if is_tokens => format!("~{tokens:.0}"),
            Some(rank) if name == "MRR" => format!("{rank:.2}"),
            Some(share) => format!("{:.0} %", 100.0 * share),
        };
        bars.push(Bar {
            name: name.to_owned(),
            parts: values.map(|value| value / most),
            labels: figures.map(label),
        });
    }
    bars
}

/// The two bars of one figure.
struct Bar {
    name: String,
    /// The values before and after, from 0 to 1.
    parts: [f64; 2],
    /// The text behind each bar.
    labels: [String; 2],
}

/// Lengths in pixels.
const LEFT: f64 = 180.0;
const WIDTH: f64 = 360.0;
const RIGHT: f64 = 80.0;
const TOP: f64 = 48.0;
const THICKNESS: f64 = 14.0;
const STEP: f64 = 44.0;

/// The colours of before and after. They differ in greyscale, too.
const COLOURS: [&str; 2] = ["#9aa5b1", "#2f6f9f"];

/// Draws the figures, one below the other.
fn before_and_after(bars: &[Bar]) -> String {
    let rows = bars.iter().fold(0.0, |rows, _| rows + 1.0);
    let (width, height) = (LEFT + WIDTH + RIGHT, TOP + rows * STEP + 12.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Recall before and after</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut x = LEFT;
    for (name, colour) in ["before", "after"].into_iter().zip(COLOURS) {
        svg.push_str(&format!(
            "<rect x=\"{x}\" y=\"16\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"26\">{name}</text>\n",
            x + 18.0
        ));
        x += 90.0;
    }
    let mut y = TOP;
    for bar in bars {
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 10.0,
            y + THICKNESS + 4.0,
            escaped(&bar.name)
        ));
        let mut top = y;
        for ((part, label), colour) in bar.parts.iter().zip(&bar.labels).zip(COLOURS) {
            let length = WIDTH * part.clamp(0.0, 1.0);
            svg.push_str(&format!(
                "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"{THICKNESS}\" fill=\"{colour}\"/>\n\
                 <text x=\"{:.1}\" y=\"{}\">{}</text>\n",
                LEFT + length + 6.0,
                top + THICKNESS - 3.0,
                escaped(label)
            ));
            top += THICKNESS + 2.0;
        }
        y += STEP;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_figures_of_an_experiment_are_drawn() {
        let side = |mrr: f64, tokens: u64| {
            json!({
                "recall": { "recall_at": { "1": 0.5 }, "mrr": mrr },
                "unasked": { "given": null },
                "working_set": { "mean_tokens": tokens },
            })
        };
        let bars = bars(&json!({ "before": side(1.0, 200), "after": side(0.9, 100) }));
        let names: Vec<&str> = bars.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(
            names,
            ["found among the first 1", "MRR", "a session starts with"]
        );
        let [_, rank, tokens] = bars.as_slice() else {
            panic!("{names:?}");
        };
        assert_eq!(rank.labels, ["1.00", "0.90"]);
        assert_eq!(tokens.labels, ["~200", "~100"]);
        assert!((tokens.parts[1] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let bar = Bar {
            name: "a < b".to_owned(),
            parts: [0.25, 2.0],
            labels: ["25 %".to_owned(), "much".to_owned()],
        };
        let svg = before_and_after(&[bar]);
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        for part in [
            "width=\"90.0\"",
            "width=\"360.0\"",
            "a &lt; b",
            "25 %",
            "much",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }
}
