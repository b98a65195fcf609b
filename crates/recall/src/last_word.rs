//! Finds which note has the last word: a later note that changes what an earlier one says.
//!
//! The relation is computed when it is read, from the texts alone, and never written. Candidates
//! are notes of the project that share rare words; [`Rulings`] compares them. It is certain if the
//! later text names what it replaces. Otherwise a later sentence about the same subject *may* change
//! the earlier one: it is quoted beside it in one line, and nothing is hidden. A person who verifies
//! the earlier note after the later one was written says that it still holds, which ends the
//! relation.

use std::{
    cell::{OnceCell, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, parse_timestamp},
};
use anamnesis_store::index::{Documents, Entry, Error, Index, Period, ProjectNotes, RelatedText};
use anamnesis_text::{
    amendment::{Focus, Rulings},
    terms::terms,
    truncate,
};
use chrono::{DateTime, Utc};

/// The maximum length of a chain of changes.
const MAX_STEPS: usize = 3;

/// The maximum number of notes that change a note for certain, and that are quoted beside it.
const MAX_CERTAIN: usize = 2;
const MAX_QUOTED: usize = 2;

/// The newest note is quoted, too, if its weight is at least this share of the highest one.
const NEWER_SHARE: f64 = 0.4;

/// The maximum length of a quoted line, in characters.
const MAX_QUOTE: usize = 200;

/// A later note that changes what an earlier one says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWord {
    /// The later note.
    pub later: NoteId,
    /// The earlier note.
    pub earlier: NoteId,
    /// What the earlier note said.
    pub was: String,
    /// Until when it held: when the later note was written.
    pub until: Option<DateTime<Utc>>,
    /// Where the later note says it, and its line there.
    pub later_at: usize,
    /// See `later_at`.
    pub says: String,
    /// Whether the later text names what it replaces. If not, both may hold.
    pub is_certain: bool,
    /// Whether nothing else is left of the earlier note.
    pub is_whole: bool,
}

impl LastWord {
    fn new(later: &RelatedText, earlier: NoteId, was: String, later_at: usize) -> Self {
        Self {
            later: later.id,
            earlier,
            was,
            until: parse_timestamp(&later.updated_at),
            later_at,
            says: quote(&later.title, &later.body, later_at),
            is_certain: false,
            is_whole: false,
        }
    }

    /// Returns the remark about the later note, if it is shown: "was: 8080, until 12 Oct 2026".
    /// `short` returns a note's short id.
    pub fn remark(&self, short: impl Fn(NoteId) -> String) -> String {
        if self.is_certain {
            let until = self.until.map(|until| until.format(", until %-d %b %Y"));
            let until = until.map_or_else(String::new, |until| until.to_string());
            format!("was: {}{until}", self.was)
        } else {
            format!("may change #{}", short(self.earlier))
        }
    }

    /// Returns the remark about the earlier note if the later one is shown, too.
    pub fn remark_on_earlier(&self, short: impl Fn(NoteId) -> String) -> String {
        let verb = if self.is_certain {
            "changed since by"
        } else {
            "may be changed by"
        };
        format!("{verb} #{}", short(self.later))
    }

    /// Returns the line that quotes the later note beside the earlier one: "later: we use Vitest
    /// (#9G5FAV, 12 Oct 2026)".
    pub fn line(&self, short: impl Fn(NoteId) -> String) -> String {
        let at = self.until.map(|until| until.format(", %-d %b %Y"));
        let at = at.map_or_else(String::new, |at| at.to_string());
        format!("later: {} (#{}{at})", self.says, short(self.later))
    }
}

/// A text of a note that is about to be shown.
#[derive(Debug, Clone, Copy)]
pub struct EarlierText<'a> {
    /// The note.
    pub id: NoteId,
    /// Its project's key.
    pub project: &'a str,
    /// When it was changed.
    pub updated_at: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its body.
    pub body: &'a str,
    /// The matched words; empty if the whole note counts.
    pub matched: &'a [String],
}

impl<'a> EarlierText<'a> {
    /// Takes the text of a note.
    pub fn of_note(note: &'a Note, matched: &'a [String]) -> Self {
        Self {
            id: note.id,
            project: &note.project,
            updated_at: &note.updated_at,
            title: &note.title,
            body: &note.body,
            matched,
        }
    }

    /// Takes the text of a note in the index.
    pub fn of_text(text: &'a RelatedText, matched: &'a [String]) -> Self {
        Self {
            id: text.id,
            project: &text.project,
            updated_at: &text.updated_at,
            title: &text.title,
            body: &text.body,
            matched,
        }
    }
}

/// The later notes of the projects whose notes are shown. Nothing is read before the first question.
pub struct LaterNotes<'a> {
    index: &'a Index,
    /// The keys of the asking project.
    keys: Vec<String>,
    documents: OnceCell<Documents>,
    projects: RefCell<BTreeMap<String, Rc<ProjectNotes<'a>>>>,
    /// The texts that were compared. One is compared with several.
    rulings: RefCell<HashMap<NoteId, Rc<Rulings>>>,
}

impl<'a> LaterNotes<'a> {
    /// Prepares for questions. `keys` are the current and former keys of the asking project.
    pub fn new(index: &'a Index, keys: Vec<String>) -> Self {
        Self {
            index,
            keys,
            documents: OnceCell::new(),
            projects: RefCell::default(),
            rulings: RefCell::default(),
        }
    }

    /// Drops the texts and the words that were read. They are read again when they are needed.
    pub fn drop_texts(&mut self) {
        self.projects.get_mut().clear();
        self.rulings.get_mut().clear();
    }

    fn of_project(&self, project: &str) -> Result<Rc<ProjectNotes<'a>>, Error> {
        let is_own = project == GLOBAL || self.keys.iter().any(|key| key == project);
        let name = if is_own { GLOBAL } else { project };
        if let Some(known) = self.projects.borrow().get(name) {
            return Ok(Rc::clone(known));
        }
        let other = [project.to_owned()];
        let keys = if is_own { &self.keys[..] } else { &other };
        let documents = match self.documents.get() {
            Some(documents) => documents,
            None => self.documents.get_or_init({
                let documents = self.index.documents()?;
                || documents
            }),
        };
        let notes = Rc::new(ProjectNotes::new(self.index, documents, keys));
        let mut projects = self.projects.borrow_mut();
        projects.insert(name.to_owned(), Rc::clone(&notes));
        Ok(notes)
    }

    fn rulings(&self, note: &RelatedText) -> Rc<Rulings> {
        let mut known = self.rulings.borrow_mut();
        let parse = || Rc::new(Rulings::parse(&note.title, &note.body));
        Rc::clone(known.entry(note.id).or_insert_with(parse))
    }

    /// Returns the notes that change what a text says, then those that may, the newest first. A note
    /// that is changed itself is represented by the last one of its chain.
    pub fn last_words(&self, text: &EarlierText<'_>) -> Result<Vec<LastWord>, Error> {
        let notes = self.of_project(text.project)?;
        let asked = text.matched.iter().flat_map(|word| terms(word)).collect();
        let own = Rulings::parse(text.title, text.body);
        let mut words = Vec::new();
        let mut likely: Vec<LastWord> = Vec::new();
        for (word, later) in self.direct(&notes, text, &own, Focus::Asked(&asked))? {
            self.follow(&notes, &own, word, later, &mut words, &mut likely)?;
        }
        let mut seen = BTreeSet::from([text.id]);
        words.retain(|word: &LastWord| seen.insert(word.later));
        likely.retain(|word| seen.insert(word.later));
        // The likeliest one and the newest of the others.
        let newest = likely
            .iter()
            .skip(1)
            .max_by_key(|word| (word.until, word.later));
        let quoted = newest.into_iter().chain(likely.first());
        words.extend(quoted.cloned());
        Ok(words)
    }

    /// Follows the chain of a change: to the last certain one, and to one that may change that.
    fn follow(
        &self,
        notes: &ProjectNotes<'_>,
        own: &Rulings,
        mut word: LastWord,
        mut later: RelatedText,
        words: &mut Vec<LastWord>,
        likely: &mut Vec<LastWord>,
    ) -> Result<(), Error> {
        for _ in 1..MAX_STEPS {
            let change = Focus::Change {
                at: word.later_at,
                of: own,
            };
            let text = EarlierText::of_text(&later, &[]);
            let next = self.direct(notes, &text, &self.rulings(&later), change)?;
            // A certain change is preferred to one that is newer.
            let is_certain =
                word.is_certain && next.first().is_some_and(|(next, _)| next.is_certain);
            let next = next.into_iter().map(|(next, text)| {
                let next = LastWord {
                    earlier: word.earlier,
                    until: if is_certain { word.until } else { next.until },
                    was: word.was.clone(),
                    is_certain,
                    is_whole: word.is_whole && is_certain,
                    ..next
                };
                (next, text)
            });
            let mut next = next.collect::<Vec<_>>();
            if !is_certain {
                // What may be changed is kept beside what may change it.
                let list = if word.is_certain { words } else { &mut *likely };
                list.push(word);
                likely.extend(next.into_iter().map(|(next, _)| next));
                return Ok(());
            }
            (word, later) = next.swap_remove(0);
        }
        words.push(word);
        Ok(())
    }

    /// Returns the remarks beside a text about the later notes: the line of each, or its id if it is
    /// shown, too.
    pub fn remarks(
        &self,
        text: &EarlierText<'_>,
        is_shown: impl Fn(NoteId) -> bool,
        short: impl Fn(NoteId) -> String,
    ) -> Result<Vec<String>, Error> {
        let words = self.last_words(text)?.into_iter().take(MAX_QUOTED);
        Ok(words
            .map(|word| {
                if is_shown(word.later) {
                    word.remark_on_earlier(&short)
                } else {
                    word.line(&short)
                }
            })
            .collect())
    }

    /// As [`Self::remarks`], for a note of the index.
    pub fn remarks_of(&self, id: NoteId, matched: &[String]) -> Result<Vec<String>, Error> {
        let Some(text) = self.index.related_text(id)? else {
            return Ok(Vec::new());
        };
        let short = |id: NoteId| self.index.short_id(id).unwrap_or_else(|_| id.to_string());
        self.remarks(&EarlierText::of_text(&text, matched), |_| false, short)
    }

    /// Returns what a note changes in earlier notes, the newest first.
    pub fn changed_by(&self, entry: &Entry, note: &Note) -> Result<Vec<LastWord>, Error> {
        let own = Rulings::parse(&note.title, &note.body);
        let this = RelatedText {
            id: note.id,
            project: note.project.clone(),
            title: note.title.clone(),
            body: note.body.clone(),
            updated_at: entry.updated_at.clone(),
        };
        let all = BTreeSet::new();
        let words = own.anchors(Focus::Asked(&all)).into_iter();
        let notes = self.of_project(&entry.project)?;
        let mut changes = Vec::new();
        for earlier in notes.related(words, Period::Earlier, time(&entry.updated_at).timestamp())? {
            let rulings = self.rulings(&earlier);
            if self.verified(earlier.id)? <= Some(time(&entry.updated_at)) {
                changes.extend(certain(&this, earlier.id, &rulings, &own));
            }
        }
        changes.sort_by_key(|change| Reverse(change.earlier));
        Ok(changes)
    }

    /// Returns the notes that directly change what a text says, the newest first, then the one that
    /// most likely may, and the newest that may.
    fn direct(
        &self,
        notes: &ProjectNotes<'_>,
        text: &EarlierText<'_>,
        own: &Rulings,
        focus: Focus<'_>,
    ) -> Result<Vec<(LastWord, RelatedText)>, Error> {
        let anchors = own.anchors(focus).into_iter();
        let mut later = notes.related(anchors, Period::Later, time(text.updated_at).timestamp())?;
        later.sort_by(|one, other| (&other.updated_at, other.id).cmp(&(&one.updated_at, one.id)));
        // A word that cannot be looked up is not rare.
        let rarity = |word: &str| notes.rarity(word).unwrap_or_default();
        let verified = self.verified(text.id)?;
        let mut changes = Vec::new();
        let mut likely = Vec::new();
        for related in later {
            if related.id == text.id || verified.is_some_and(|at| at > time(&related.updated_at)) {
                continue;
            }
            let rulings = self.rulings(&related);
            if let Some(word) = certain(&related, text.id, own, &rulings) {
                if changes.len() < MAX_CERTAIN {
                    changes.push((word, related));
                }
            } else if let Some(found) = own.followed_by(&rulings, focus, &rarity) {
                let word = LastWord::new(&related, text.id, found.was, found.at);
                likely.push((found.weight, word, related));
            }
        }
        let most = likely
            .iter()
            .map(|(weight, ..)| *weight)
            .fold(0.0, f64::max);
        let mut is_newest = true;
        likely.retain(|(weight, ..)| {
            let is_kept = *weight >= most || is_newest && *weight >= NEWER_SHARE * most;
            is_newest &= !is_kept;
            is_kept
        });
        likely.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        likely.truncate(MAX_QUOTED);
        changes.extend(likely.into_iter().map(|(_, word, related)| (word, related)));
        Ok(changes)
    }

    /// Returns when somebody last verified a note.
    fn verified(&self, id: NoteId) -> Result<Option<DateTime<Utc>>, Error> {
        let usage = self.index.usage_of([id])?;
        let months = usage.get(&id).into_iter().flatten();
        Ok(months.filter_map(|(_, counts)| counts.verified).max())
    }
}

/// Returns how a later text changes an earlier one for certain.
fn certain(
    later: &RelatedText,
    earlier: NoteId,
    own: &Rulings,
    rulings: &Rulings,
) -> Option<LastWord> {
    let amendments = own.amended_by(rulings);
    let first = amendments.first()?;
    Some(LastWord {
        is_certain: true,
        is_whole: amendments.len() >= own.statements(),
        ..LastWord::new(later, earlier, first.was.clone(), first.later_at)
    })
}

fn time(text: &str) -> DateTime<Utc> {
    parse_timestamp(text).unwrap_or_default()
}

/// Returns the line of a body at an offset, from the sentence on if it is too long. A sentence that
/// is not there is the title.
fn quote(title: &str, body: &str, at: usize) -> String {
    let Some((before, rest)) = body.split_at_checked(at) else {
        return truncate::line(title, MAX_QUOTE);
    };
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = rest.lines().next().unwrap_or_default();
    let whole = format!("{}{line}", &before[start..]);
    let whole = whole.trim_start_matches("- ");
    let label = whole
        .strip_prefix("**")
        .and_then(|rest| rest.split_once(":** "));
    let whole = label.map_or(whole, |(_, rest)| rest);
    let is_short = whole.chars().count() <= MAX_QUOTE;
    truncate::line(if is_short { whole } else { line }, MAX_QUOTE)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{NoteType, timestamp};
    use anamnesis_store::{journal::Ledger, notes::Stored};
    use chrono::TimeDelta;

    use super::*;
    use crate::{
        knowledge::StoreKnowledge,
        note_set::{Limits, Outcome, Request, WORDS_ALONE, recall},
        rank::Query,
        render::{Budget, recalled_block},
        session_start::{
            self,
            tests::{Fixture, now},
        },
        threshold::Floor,
    };

    /// Adds a session note with this text, so many days ago.
    fn session(fixture: &Fixture, text: &str, days: i64) -> Stored {
        fixture.add("Look at the build", |note| {
            note.note_type = NoteType::Episodic;
            note.session = Some(note.id.to_string());
            note.body = format!("**Said:**\n- {text}\n\n**Outcome:** All is well.");
            note.updated_at = timestamp(now() - TimeDelta::days(days));
        })
    }

    fn answer(fixture: &Fixture, index: &Index, question: &str) -> (Outcome, String) {
        let knowledge = StoreKnowledge {
            index,
            journal: None,
            with_learned: false,
            now: now(),
        };
        let request = Request {
            query: &Query::parse(question),
            project: "p",
            also: &[],
            limits: Limits {
                floor: Floor::Usual,
                notes: 3,
                linked: 1,
                changes: 2,
            },
            ledger: &Ledger::new(),
            own: None,
            knowledge: &knowledge,
            vector: WORDS_ALONE,
        };
        let outcome = recall(index, &fixture.notes, &request).unwrap();
        let notes: Vec<_> = outcome
            .given
            .iter()
            .map(|given| given.recalled.clone())
            .collect();
        let text = recalled_block(&notes, Budget(600), now(), NoteId::short).text;
        (outcome, text)
    }

    #[test]
    fn the_last_word_comes_before_what_it_changes() {
        let fixture = Fixture::new();
        let old = session(
            &fixture,
            "We use Redux for the dashboard state. Keep it small.",
            9,
        );
        session(&fixture, "Switch from Redux to Zustand.", 5);
        let last = session(&fixture, "Zustand is gone, we go with Jotai.", 2);
        session(&fixture, "We use Vitest for the unit tests.", 1);
        let index = fixture.refreshed();
        let (outcome, text) = answer(&fixture, &index, "how do we handle the dashboard state?");
        let given: Vec<NoteId> = outcome
            .given
            .iter()
            .map(|given| given.recalled.note.id)
            .collect();
        assert_eq!(given, [last.path.id, old.path.id], "{text}");
        assert!(text.contains("was: Redux, until 28 Dec 2025"), "{text}");
        assert!(
            text.contains(&format!("changed since by #{}", last.path.id.short())),
            "{text}"
        );
    }

    #[test]
    fn a_note_of_which_nothing_is_left_is_withheld() {
        let fixture = Fixture::new();
        let old = fixture.add("The gateway listens on port 8080.", |note| {
            note.body.clone_from(&note.title);
            note.updated_at = timestamp(now() - TimeDelta::days(9));
        });
        let last = session(&fixture, "The gateway listens on port 9090 now.", 2);
        let index = fixture.refreshed();
        let (outcome, text) = answer(&fixture, &index, "which port has the gateway?");
        let given: Vec<NoteId> = outcome
            .given
            .iter()
            .map(|given| given.recalled.note.id)
            .collect();
        assert_eq!(given, [last.path.id], "{text}");
        assert!(text.contains("was: 8080"), "{text}");
        let held: Vec<&str> = outcome.held.iter().map(|held| held.note.as_str()).collect();
        assert!(held.contains(&old.path.id.to_string().as_str()));
    }

    #[test]
    fn a_later_note_in_other_words_is_quoted_beside_the_earlier_one() {
        let fixture = Fixture::new();
        let old = session(&fixture, "I picked Jest for the frontend unit tests.", 9);
        let last = session(&fixture, "Jest turned out badly, take Vitest.", 2);
        let index = fixture.refreshed();
        let (outcome, text) = answer(&fixture, &index, "why are the frontend unit tests broken?");
        let given: Vec<NoteId> = outcome
            .given
            .iter()
            .map(|given| given.recalled.note.id)
            .collect();
        assert_eq!(given, [old.path.id], "{text}");
        let line = format!(
            "later: Jest turned out badly, take Vitest. (#{}, 31 Dec 2025)",
            last.path.id.short()
        );
        assert!(text.contains(&line), "{text}");
    }

    #[test]
    fn a_session_start_gives_the_last_word_before_what_it_changes() {
        let fixture = Fixture::new();
        let old = session(
            &fixture,
            "We use Redux for the dashboard. Keep it small.",
            9,
        );
        let last = session(&fixture, "Switch from Redux to Zustand.", 5);
        let index = fixture.refreshed();
        let request = session_start::Request {
            project: "p",
            also: &[],
            k: 8,
            session: None,
            resumed: None,
            folder: None,
            now: now(),
            had: &[],
            journal: None,
        };
        let give = |chosen| {
            let given =
                session_start::with_last_words(&index, &fixture.notes, &request, chosen).unwrap();
            let given = given.into_iter();
            given
                .map(|chosen| (chosen.note.id, chosen.remarks.join("; ")))
                .collect::<Vec<_>>()
        };
        let set = session_start::working_set(&index, &fixture.notes, &request).unwrap();
        let mut chosen = set.chosen;
        // The later note is chosen after the earlier one, or not at all.
        chosen.sort_by_key(|chosen| chosen.note.updated_at.clone());
        let ids: Vec<NoteId> = give(chosen.clone()).iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [last.path.id, old.path.id]);
        chosen.retain(|chosen| chosen.note.id == old.path.id);
        let given = give(chosen);
        assert_eq!(given.len(), 2);
        assert_eq!(
            given[0],
            (last.path.id, "was: Redux, until 28 Dec 2025".into())
        );
        assert!(given[1].1.starts_with("changed since by #"), "{given:?}");
    }

    #[test]
    fn a_rebuilt_index_gives_the_same_last_words() {
        let fixture = Fixture::new();
        let old = session(&fixture, "Call the endpoint `/v1/users`.", 9);
        let words = |index: &Index| {
            let text = index.related_text(old.path.id).unwrap().unwrap();
            let later = LaterNotes::new(index, Vec::new());
            later.last_words(&EarlierText::of_text(&text, &[])).unwrap()
        };
        assert!(words(&fixture.refreshed()).is_empty());
        session(&fixture, "Rename `/v1/users` to `/v1/members`.", 2);
        let updated = words(&fixture.refreshed());
        assert_eq!(updated.len(), 1);
        let timeout = std::time::Duration::from_secs(5);
        let rebuilt = Index::rebuild(&fixture.home, &fixture.notes, timeout).unwrap();
        assert_eq!(words(&rebuilt), updated);
    }
}
