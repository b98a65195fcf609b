//! Small charts. The numbers are text; the bars are SVG that a screen reader skips.

use maud::{Markup, html};

/// A row of a bar chart.
pub(crate) struct Bar {
    /// The label of the row.
    pub(crate) label: String,
    /// The target of the label's link.
    pub(crate) href: Option<String>,
    /// The length of the bar.
    pub(crate) value: i64,
    /// The length of a darker bar in front of it.
    pub(crate) part: i64,
    /// The numbers, in words.
    pub(crate) text: String,
}

/// Returns a value as a percentage of the largest one.
fn share(value: i64, largest: i64) -> i64 {
    value.clamp(0, largest) * 100 / largest.max(1)
}

/// Returns a chart with one bar per row.
pub(crate) fn bars(caption: &str, rows: &[Bar]) -> Markup {
    let largest = rows.iter().map(|row| row.value).max().unwrap_or(0);
    html! {
        table.bars {
            caption { (caption) }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" {
                            @match &row.href {
                                Some(href) => { a href=(href) { bdi { (row.label) } } }
                                None => { (row.label) }
                            }
                        }
                        td.bar {
                            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                                rect.whole width=(share(row.value, largest)) height="10" {}
                                rect.part width=(share(row.part, largest)) height="10" {}
                            }
                        }
                        td { (row.text) }
                    }
                }
            }
        }
    }
}

/// The minimum number of places in a chart of columns, so that a single month is not drawn as wide as
/// the chart.
const MIN_COLUMNS: usize = 12;

/// A column of a chart by day or month.
pub(crate) struct Column {
    /// The height of the column.
    pub(crate) value: i64,
    /// The height of a darker part at its foot.
    pub(crate) part: i64,
    /// The time and its numbers.
    pub(crate) text: String,
}

/// Returns a chart of columns, the last one at the right edge. `label` describes it as a whole.
pub(crate) fn columns(label: &str, columns: &[Column]) -> Markup {
    let largest = columns.iter().map(|column| column.value).max().unwrap_or(0);
    let places = columns.len().max(MIN_COLUMNS);
    let empty = places - columns.len();
    html! {
        svg.columns viewBox={ "0 0 " (places * 10) " 100" } preserveAspectRatio="none"
            role="img" aria-label=(label) {
            @for place in 0..empty { rect.day x=(place * 10) y="0" width="9" height="100" {} }
            @for (place, column) in (empty..).zip(columns) {
                @let (whole, part) = (share(column.value, largest), share(column.part, largest));
                g {
                    title { (column.text) }
                    rect.day x=(place * 10) y="0" width="9" height="100" {}
                    rect.whole x=(place * 10) y=(100 - whole) width="9" height=(whole) {}
                    rect.part x=(place * 10) y=(100 - part) width="9" height=(part) {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_column_is_as_narrow_as_one_of_a_year_and_at_the_right() {
        let month = Column {
            value: 4,
            part: 2,
            text: "2026-06".to_owned(),
        };
        let chart = columns("by month", &[month]).into_string();
        assert!(chart.contains("viewBox=\"0 0 120 100\""), "{chart}");
        assert!(chart.contains("class=\"whole\" x=\"110\""), "{chart}");
        assert_eq!(chart.matches("class=\"day\"").count(), 12);
    }
}
