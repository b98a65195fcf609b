//! The page of `anamnesis prove`: one file that a browser shows without a server.

use anamnesis_app::{
    Error,
    format::{count, date, number},
    prove::{Example, LIMITS, Proof},
};
use anamnesis_text::clean::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{guard, layout::line};

/// The style sheet of the viewer and of this page.
pub(crate) const STYLE: &str = include_str!("../assets/viewer.css");

/// How many examples of each kind are shown.
const EXAMPLES: usize = 10;

/// Returns the page. It loads nothing and runs nothing.
///
/// # Errors
/// The system has no random number for its policy.
pub fn proof_html(proof: &Proof) -> Result<String, Error> {
    let nonce = guard::secret::<32>().map_err(Error::prefixed("no random number"))?;
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Proof · Anamnesis" }
                style nonce=(nonce) { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { "What earlier notes would have told" }
                    p { (count(proof.sessions, "past session")) " of " (count(proof.projects, "project"))
                        " played in an empty store, in the order of time; "
                        (count(proof.skipped, "transcript")) " skipped." }
                    (totals(proof))
                    (examples("Best: found again after the most searches and files", &proof.best(EXAMPLES)))
                    (examples("Worst: the most tokens for nothing", &proof.worst(EXAMPLES)))
                    section {
                        h2 { "What this cannot know" }
                        ul { @for limit in LIMITS.lines() { li { (limit) } } }
                    }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn totals(proof: &Proof) -> Markup {
    let sum = &proof.totals;
    html! {
        dl {
            dt { "Prompts" } dd { (number(proof.prompts)) @if proof.with_memory > 0 {
                ", " (number(proof.with_memory)) " of them in sessions that had notes already; not judged"
            } }
            dt { "Would have got notes" } dd { (number(proof.given)) ", " (count(sum.tokens, "token")) }
            dt { "Found again at a cost" } dd { (number(sum.found_again)) ", after " (number(sum.searches))
                " searches and " (count(sum.files, "file")) }
            dt { "Said without a search" } dd { (number(sum.said)) }
            dt { "Nothing of the note" } dd { (number(sum.nothing)) ", " (number(sum.tokens_for_nothing))
                " tokens for nothing" }
        }
    }
}

fn examples(heading: &str, examples: &[&Example]) -> Markup {
    html! {
        @if !examples.is_empty() {
            section {
                h2 { (heading) }
                @for example in examples {
                    div.card {
                        p.prompt { bdi { (line(&example.prompt)) } }
                        div.facts {
                            span { bdi { (line(&example.project)) } }
                            @if let Some(at) = example.at { span { (date(at.timestamp_millis())) } }
                            span { (count(example.tokens, "token")) }
                            span { (number(example.searches)) " searches, " (count(example.files, "file")) }
                        }
                        @for note in &example.notes {
                            details {
                                summary { bdi { (line(&note.title)) }
                                    @if !note.words.is_empty() {
                                        ": " span.matched { (line(&note.words.join(", "))) }
                                    } }
                                @if note.text.is_empty() { p.hint { "Only named." } }
                                @else { pre.exact { (clean(&note.text)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
