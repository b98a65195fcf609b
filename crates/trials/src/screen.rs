//! A screen of a terminal as an SVG, for the documents.

use std::fmt::Write as _;

/// The size of a character cell, for a font size of 14.
const CELL: (f32, f32) = (8.4, 19.0);

/// The space around the text.
const MARGIN: f32 = 14.0;

const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#e6edf3";

/// The colours 30 to 37 and 90 to 97.
const COLOURS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];

/// How a run of characters looks.
#[derive(Debug, Clone, PartialEq, Default)]
struct Look {
    colour: Option<String>,
    is_bold: bool,
    is_dim: bool,
}

impl Look {
    /// Applies the numbers of an SGR sequence. Backgrounds are left out.
    fn apply(&mut self, numbers: &str) {
        let codes: Vec<usize> = numbers
            .split([';', ':'])
            .map(|code| code.parse().unwrap_or(0))
            .collect();
        let mut rest = codes.into_iter();
        while let Some(code) = rest.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                30..=37 => self.colour = Some(COLOURS[code - 30].to_owned()),
                90..=97 => self.colour = Some(COLOURS[code - 82].to_owned()),
                39 => self.colour = None,
                38 | 48 => {
                    let colour = extended(&mut rest);
                    if code == 38 {
                        self.colour = colour;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Parses a colour of 256, or one of red, green and blue.
fn extended(numbers: &mut impl Iterator<Item = usize>) -> Option<String> {
    match numbers.next()? {
        2 => {
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        5 => match numbers.next()? {
            basic @ 0..=15 => Some(COLOURS[basic].to_owned()),
            cube @ 16..=231 => {
                let level = |part: usize| if part == 0 { 0 } else { 55 + 40 * part };
                let cube = cube - 16;
                let (red, green, blue) = (level(cube / 36), level(cube / 6 % 6), level(cube % 6));
                Some(format!("#{red:02x}{green:02x}{blue:02x}"))
            }
            grey => {
                let grey = 8 + 10 * (grey.min(255) - 232);
                Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
            }
        },
        _ => None,
    }
}

/// Returns the text, with its terminal colours, as an SVG.
pub fn svg(text: &str, title: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let mut body = String::new();
    let mut columns = 40;
    let mut look = Look::default();
    for (row, line) in lines.iter().enumerate() {
        let y = MARGIN + CELL.1 * (number(row) + 0.8);
        let mut column = 0;
        let mut parts = line.split('\u{1b}');
        let mut put = |text: &str, look: &Look| {
            let width = text.chars().count();
            if !text.trim().is_empty() {
                let colour = look.colour.as_deref().unwrap_or(FOREGROUND);
                let x = MARGIN + CELL.0 * number(column);
                let weight = if look.is_bold {
                    " font-weight=\"bold\""
                } else {
                    ""
                };
                let dim = if look.is_dim { " opacity=\"0.6\"" } else { "" };
                let _ = writeln!(
                    body,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\"{weight}{dim}>{}</text>",
                    escaped(text)
                );
            }
            column += width;
        };
        put(parts.next().unwrap_or_default(), &look);
        for part in parts {
            // Only SGR sequences set colours: `[` numbers `m`.
            let sequence = part.strip_prefix('[').and_then(|part| part.split_once('m'));
            match sequence.filter(|(numbers, _)| !numbers.contains(char::is_alphabetic)) {
                Some((numbers, text)) => {
                    look.apply(numbers);
                    put(text, &look);
                }
                None => put(part, &look),
            }
        }
        columns = columns.max(column);
    }
    let width = 2.0 * MARGIN + CELL.0 * number(columns);
    let height = 2.0 * MARGIN + CELL.1 * number(lines.len());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" \
         role=\"img\">\n<style>text {{ white-space: pre }}</style>\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n{body}</svg>\n",
        escaped(title)
    )
}

/// Converts a count of cells. No screen has more than 65,535.
fn number(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap_or(u16::MAX))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_attributes_and_text_is_escaped() {
        let svg = svg(
            "\u{1b}[33mID\u{1b}[0m  a < b\n\u{1b}[1;38;5;196mred\u{1b}[m",
            "A & B",
        );
        for part in [
            "<title>A &amp; B</title>",
            "fill=\"#d29922\">ID</text>",
            "fill=\"#e6edf3\">  a &lt; b</text>",
            "fill=\"#ff0000\" font-weight=\"bold\">red</text>",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert!(!svg.contains('\u{1b}'));
    }
}
