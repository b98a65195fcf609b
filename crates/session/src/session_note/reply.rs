//! What later prompts of a session take back: an answer, what a sentence says, a rule.

use std::collections::HashSet;

use super::{ParsedDigest, TypedPrompt, answer, title::naming_words};
use crate::{declared::question_and_answer, directive, phrases::Words};
use anamnesis_text::correction;

/// A sentence of a prompt that opposes, denies, rejects or takes back something. It is compared with many others,
/// so it is read once.
pub(super) struct Reply {
    /// The turn's index.
    turn: usize,
    text: String,
    named: HashSet<String>,
    opposes: bool,
    denies: bool,
    rejected: Option<String>,
    takes_back: bool,
}

impl Reply {
    pub(super) fn new(turn: usize, said: &str) -> Option<Self> {
        let opposes = directive::opposes(said);
        let denies = directive::negates(said);
        let rejected = directive::rejected_word(said);
        let takes_back = directive::takes_back(said);
        let is_any = opposes || denies || rejected.is_some() || takes_back;
        (is_any || correction::gives_value_up(said)).then(|| Self {
            turn,
            text: said.to_owned(),
            named: naming_words(said),
            opposes,
            denies,
            rejected,
            takes_back,
        })
    }
}

impl ParsedDigest<'_> {
    /// Returns the prompt after an answer.
    fn next_prompt(&self, turn: usize) -> Option<&TypedPrompt> {
        self.prompts.iter().find(|prompt| prompt.turn > turn)
    }

    /// Returns whether a later turn edited what was edited up to a turn, or the first file at all.
    pub(super) fn is_reworked(&self, turn: usize, later: usize) -> bool {
        let turns = &self.digest.turns;
        let mut known = turns
            .iter()
            .take(turn + 1)
            .flat_map(|turn| &turn.edited)
            .peekable();
        let edited = turns.get(later).map_or(&[][..], |later| &later.edited);
        !edited.is_empty() && (known.peek().is_none() || known.any(|file| edited.contains(file)))
    }

    /// Returns whether the prompt after an answer rejects it: it begins by contradicting it, and its turn
    /// changed something. "No" to a question does not, and "no, thanks" leaves what was done.
    pub(super) fn is_answer_rejected(&self, turn: usize) -> bool {
        let answer = self
            .digest
            .turns
            .get(turn)
            .and_then(|turn| turn.answer.as_deref());
        let has_asked = answer.is_some_and(directive::is_question);
        let Some(next) = self.next_prompt(turn) else {
            return false;
        };
        let Some(begins) = next.sentences().next() else {
            return false;
        };
        let is_wrong = directive::says_wrong(begins);
        if !directive::contradicts(begins) || has_asked && directive::says_no(begins) && !is_wrong {
            return false;
        }
        let mut later = self.answers.iter().skip(turn + 1);
        directive::undoes(begins)
            || directive::gives_other_number(begins)
            || self.is_reworked(turn, next.turn)
            || is_wrong && later.any(|answer| answer::is_substantial(answer))
    }

    /// Returns whether the next turn did what a sentence of an answer recommends.
    pub(super) fn is_carried_out(&self, turn: usize) -> bool {
        let next = self.digest.turns.get(turn + 1);
        next.is_some_and(|next| {
            !next.edited.is_empty() && !next.prompt.as_deref().is_some_and(directive::negates)
        })
    }

    /// Returns whether the next prompt denies what a sentence recommends, or what it tells if the turn changed
    /// that.
    fn is_refused(&self, turn: usize, sentence: &str) -> bool {
        let Some(next) = self.next_prompt(turn) else {
            return false;
        };
        let named = naming_words(sentence);
        let is_named = |word: &String| named.iter().any(|other| shares_stem(word, other));
        let replies = self.replies.iter();
        let mut denials = replies.filter(|reply| reply.turn == next.turn && reply.denies);
        (answer::recommends(sentence) || self.is_reworked(turn, next.turn))
            && denials.any(|reply| reply.named.iter().any(is_named))
    }

    /// Returns whether a later prompt takes back what was said in a turn: the next one rejects the whole
    /// answer or refuses the sentence, or a later one corrects or forbids what the sentence names.
    pub(super) fn is_contradicted(&self, turn: usize, sentence: &str) -> bool {
        if self.is_answer_rejected(turn) || self.is_refused(turn, sentence) {
            return true;
        }
        let named = naming_words(sentence);
        let mut later = self.replies.iter().filter(|reply| reply.turn > turn);
        later.any(|reply| {
            reply.opposes && reply.named.intersection(&named).count() >= 2
                || reply
                    .rejected
                    .as_ref()
                    .is_some_and(|word| named.contains(word))
        })
    }

    /// Returns whether a prompt after the first gives up the answer to a question: `question → answer`.
    pub(super) fn is_given_up(&self, choice: &str) -> bool {
        let first = self.prompts.first().map_or(0, |prompt| prompt.turn);
        let (_, answer) = question_and_answer(choice);
        let answer = answer.replace("(Recommended)", "");
        let mut later = self.replies.iter().filter(|reply| reply.turn > first);
        later.any(|reply| {
            let is_rejected = |word: &String| Words::new(&answer).as_str() == word;
            reply.rejected.as_ref().is_some_and(is_rejected)
                || correction::gives_up(&reply.text, &answer)
        })
    }

    /// Returns whether the person takes a rule back in a turn for which `when` holds.
    pub(super) fn is_withdrawn(&self, rule: &str, when: impl Fn(usize) -> bool) -> bool {
        let mut replies = self.replies.iter().filter(|reply| when(reply.turn));
        replies.any(|reply| reply.takes_back && directive::withdraws(&reply.text, rule))
    }
}

/// Returns whether two words differ in their ends only: "cache" and "caching".
fn shares_stem(one: &str, other: &str) -> bool {
    const MIN_STEM: usize = 4;
    let pairs = one.chars().zip(other.chars());
    let stem = pairs.take_while(|(one, other)| one == other).count();
    let shorter = one.chars().count().min(other.chars().count());
    stem >= MIN_STEM && stem + 1 >= shorter
}

#[cfg(test)]
mod tests {
    use crate::{
        session_note::{NoteText, SessionDigest, note_text, part_of, tells_result},
        turn::Turn,
    };

    const LEAK: &str = "The leak came from listeners that were never removed; `src/ws.ts` removes them on close, and a \
        test covers it.";

    /// Returns the note of a session of prompts, answers and the file that was edited in the turn, if any.
    fn note(turns: &[(&str, &str, &str)]) -> String {
        let turn = |&(prompt, answer, file): &(&str, &str, &str)| Turn {
            prompt: Some(prompt.to_owned()),
            answer: Some(answer.to_owned()),
            edited: Some(file.to_owned())
                .filter(|file| !file.is_empty())
                .into_iter()
                .collect(),
            after: None,
        };
        let NoteText { body, .. } = note_text(&SessionDigest {
            turns: turns.iter().map(turn).collect(),
            files: vec!["src/ws.ts".to_owned()],
            ..SessionDigest::default()
        })
        .unwrap();
        body
    }

    fn outcome(body: &str) -> String {
        part_of(body, "Outcome")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn a_prompt_without_a_change_leaves_the_outcome() {
        let first = ("fix the memory leak in the ws server", LEAK, "src/ws.ts");
        for (prompt, answer) in [
            ("no worries, that's fine", "OK."),
            ("no problem, ship it tomorrow", "OK."),
            ("nope, all good", "Great."),
            ("no more changes today", "OK."),
            ("no need for a changelog entry", "OK."),
            ("stop here, I'll take it from there", "OK."),
            ("stop, lunch. continue later", "Enjoy!"),
            ("stop the dev server please", "Stopped."),
            ("wait for the CI to finish", "CI is green."),
            ("wait, let me check something", "Sure."),
            ("wrong tab, sorry", "No problem."),
            (
                "why did you use a WeakMap?",
                "It lets the sockets be collected.",
            ),
            (
                "no idea what that means, explain",
                "Listeners kept the sockets alive.",
            ),
            ("revert the version bump in package.json too", "Reverted."),
            ("nein danke, sieht gut aus", "Gern."),
            ("no hace falta, gracias", "De acuerdo."),
            ("no thanks, looks good", "OK."),
            ("hm no. let me think", "OK."),
            ("No, leave it. Thanks!", "OK."),
            ("nie, dziękuję", "OK."),
        ] {
            let body = note(&[first, (prompt, answer, "")]);
            assert!(
                outcome(&body).starts_with("The leak came from"),
                "{prompt}: {body}"
            );
            assert!(!body.contains('→'), "{prompt}: {body}");
        }
        // Another file is no change of what the answer says, and an addition leaves it.
        for (prompt, file) in [
            (
                "no problem, and mention it in the changelog",
                "CHANGELOG.md",
            ),
            ("the version in package.json is old", "package.json"),
            ("also add a test for the reconnect", "src/ws.ts"),
        ] {
            let body = note(&[first, (prompt, "Done.", file)]);
            assert!(
                outcome(&body).starts_with("The leak came from"),
                "{prompt}: {body}"
            );
        }
        let asked = format!("{LEAK} Should I also add a heartbeat?");
        let first = (first.0, asked.as_str(), first.2);
        let body = note(&[first, ("no, that's fine for now", "OK.", "")]);
        assert!(outcome(&body).starts_with("The leak came from"), "{body}");
    }

    #[test]
    fn a_short_answer_after_a_later_edit_is_the_outcome() {
        const REDIS: &str = "The checkout reads the price list once and keeps it in Redis for ten minutes, because it \
            changes rarely.";
        let first = ("speed up the checkout", REDIS, "src/checkout.ts");
        for (prompt, answer) in [
            (
                "please no redis, we have no ops for it",
                "Removed Redis, the list is read per request again.",
            ),
            ("we can't use redis there", "Removed it."),
            (
                "ten minutes is too long, prices change every minute",
                "Set to 30 seconds.",
            ),
            ("ten minutes? max 30 seconds", "Set to 30 seconds."),
            ("30 seconds not 10 minutes", "Done."),
            ("customers see old prices now", "Fixed."),
            ("redis is overkill, use a map", "It is a Map now."),
            ("can you use 30 seconds instead?", "Done."),
            ("shorter please, 30s", "30 s."),
            ("Redis fliegt raus, nimm eine Map", "Erledigt."),
        ] {
            let thanks = ("thanks!", "You're welcome!", "");
            let body = note(&[first, (prompt, answer, "src/checkout.ts"), thanks]);
            let outcome = outcome(&body);
            assert!(
                outcome.ends_with(&format!("{prompt} → {answer}")),
                "{prompt}: {body}"
            );
            assert!(tells_result(&outcome), "{outcome}");
            assert_eq!(body.matches(answer).count(), 1, "{prompt}: {body}");
        }
        for prompt in [
            "please no redis, we have no ops for it",
            "we can't use redis there",
        ] {
            let body = note(&[first, (prompt, "Removed it.", "src/checkout.ts")]);
            assert!(!body.contains("keeps it in Redis"), "{body}");
        }
    }

    #[test]
    fn a_choice_that_a_later_prompt_gives_up_is_not_decided() {
        for (prompt, is_decided) in [
            ("ops vetoed it, use Postgres instead of SQLite", false),
            ("we moved from SQLite to Postgres, adapt the tests", false),
            ("SQLite is gone, the store is Postgres now", false),
            ("don't use SQLite, we have Postgres anyway", false),
            ("actually it is Postgres, not SQLite", false),
            ("statt SQLite nehmen wir Postgres", false),
            ("use Postgres for the sessions, too", true),
            ("no, the file of SQLite belongs into var/", true),
            ("don't use a pool for SQLite", true),
            ("why SQLite and not Postgres?", true),
            ("the lock error of SQLite is gone, thanks", true),
        ] {
            let turn = |prompt: &str| Turn {
                prompt: Some(prompt.to_owned()),
                answer: Some("The store is in `src/store.rs` and has tests.".to_owned()),
                ..Turn::default()
            };
            let mut digest = SessionDigest {
                turns: vec![
                    turn("write the store, we no longer use SQLite here"),
                    turn(prompt),
                ],
                files: vec!["src/store.rs".to_owned()],
                ..SessionDigest::default()
            };
            let choice = "Which store? → SQLite (Recommended)";
            digest.declared.choices = vec![choice.to_owned()];
            let NoteText { body, .. } = note_text(&digest).unwrap();
            assert_eq!(body.contains(choice), is_decided, "{prompt}: {body}");
        }
    }

    #[test]
    fn a_contradiction_with_an_edit_corrects_the_answer() {
        let first = ("fix the memory leak in the ws server", LEAK, "src/ws.ts");
        for (prompt, is_corrected) in [
            ("no, close the sockets in the server", true),
            ("why did you remove the listeners? close the sockets", true),
            ("that's not it, the sockets stay open", true),
            ("close the sockets in the server", false),
            ("no, that's fine, but fix the typo", false),
            ("no need to keep the map", false),
        ] {
            let body = note(&[first, (prompt, "Done.", "src/ws.ts")]);
            let label = if is_corrected { "Corrected" } else { "Changed" };
            assert_eq!(outcome(&body), format!("{label}: {prompt} → Done."));
            assert_eq!(body.contains("The leak came from"), !is_corrected, "{body}");
        }
    }

    #[test]
    fn a_recommendation_is_a_decision_only_if_it_was_carried_out() {
        const ADVICE: &str = "The price list is read from the database on every request, which takes 120 ms. We should \
            cache it in Redis because it changes rarely.";
        const LAST: &str = "The remaining cost is the tax call, which takes 300 ms, because it is sent for each line of \
            the order.";
        const DECIDED: &str = "**Decided:**\n- We should cache it in Redis";
        let first = ("review the checkout for perf", ADVICE, "");
        for (prompt, file, is_decided, is_told) in [
            (
                "don't cache it, prices change every minute",
                "",
                false,
                false,
            ),
            (
                "caching is not an option here, prices change every minute",
                "",
                false,
                false,
            ),
            ("no caching please", "", false, false),
            (
                "Kein Cache, die Preise ändern sich jede Minute",
                "",
                false,
                false,
            ),
            ("bez cache, ceny zmieniają się co minutę", "", false, false),
            ("no cache, fix the tax call", "src/tax.ts", false, false),
            (
                "that won't work, prices change every minute",
                "",
                false,
                true,
            ),
            ("what about the tax call?", "", false, true),
            ("good idea, do it", "src/checkout.ts", true, true),
            ("yes", "src/checkout.ts", true, true),
        ] {
            let body = note(&[first, (prompt, LAST, file)]);
            assert_eq!(body.contains(DECIDED), is_decided, "{prompt}: {body}");
            assert_eq!(
                body.contains("We should cache it"),
                is_told,
                "{prompt}: {body}"
            );
        }
        // The last long answer is the recommendation.
        let refusal = "I don't think caching is needed, prices change all the time";
        let body = note(&[first, (refusal, "Agreed, no cache then.", "")]);
        assert!(!body.contains("We should cache it"), "{body}");
    }
}
