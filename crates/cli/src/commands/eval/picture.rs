//! A bar chart of figures before and after, as SVG 1.1.

/// The two bars of one figure.
pub(super) struct Bar {
    pub(super) name: String,
    /// The values before and after, from 0 to 1.
    pub(super) parts: [f64; 2],
    /// The text behind each bar.
    pub(super) labels: [String; 2],
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
pub(super) fn before_and_after(bars: &[Bar]) -> String {
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
    use super::*;

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
