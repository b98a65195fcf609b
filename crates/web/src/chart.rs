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
