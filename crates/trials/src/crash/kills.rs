//! Kills captures and writes with SIGKILL at random moments, over one growing store.
//!
//! The moment of a kill is derived from outside: *before* if the process left no trace, *inside* if
//! it left some of its work, *after* if the note is on the disk and in the index. Moments are drawn
//! from the whole run first, then near those that were hit too rarely. After every batch one
//! undisturbed run must repair everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    os::unix::process::ExitStatusExt as _,
    process::Output,
    thread,
    time::{Duration, Instant},
};

use anamnesis_lab::random::Random;
use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, NoteType, Scope, State},
};
use anamnesis_store::{
    fs::lock::{self, Subject},
    index::Index,
    journal::Journal,
    notes::{NotePath, Notes},
};

use super::{
    Checks, report,
    sandbox::{Sandbox, describe_run},
};
use crate::Result;

/// The kills needed for each moment of capture and of write.
const WANTED: usize = 20;

/// Kills after which the store must be repaired.
const BATCH: usize = 20;

/// Turns of a session at its compaction and at its end.
const TURNS: [usize; 2] = [40, 80];

const TIMEOUT: Duration = Duration::from_secs(30);

/// An operation that writes a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    PreCompact,
    SessionEnd,
    Capture,
    Write,
    Edit,
    Move,
    Forget,
}

const KINDS: [Kind; 7] = [
    Kind::PreCompact,
    Kind::SessionEnd,
    Kind::Capture,
    Kind::Write,
    Kind::Edit,
    Kind::Move,
    Kind::Forget,
];

impl Kind {
    fn is_hook(self) -> bool {
        matches!(self, Self::PreCompact | Self::SessionEnd)
    }

    fn family(self) -> Family {
        match self {
            Self::PreCompact | Self::SessionEnd | Self::Capture => Family::Capture,
            Self::Write | Self::Edit | Self::Move | Self::Forget => Family::Write,
        }
    }
}

/// The groups in which kills are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Capture,
    Write,
}

/// The traces of a killed process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trace {
    Nothing,
    /// The journal has the body, and the note's file does not.
    RecordsOnly,
    /// The old bytes are in the trash, and the note is still there.
    TrashOnly,
    /// A temporary file.
    TemporaryFile,
    /// The note is on the disk and not in the index.
    NotIndexed,
    Everything,
}

/// The moment of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Before,
    Inside,
    After,
}

const MOMENTS: [Moment; 3] = [Moment::Before, Moment::Inside, Moment::After];

impl Trace {
    fn moment(self) -> Moment {
        match self {
            Self::Nothing => Moment::Before,
            Self::Everything => Moment::After,
            _ => Moment::Inside,
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "no trace",
            Self::RecordsOnly => "only the records",
            Self::TrashOnly => "only the trash",
            Self::TemporaryFile => "a temporary file",
            Self::NotIndexed => "not in the index",
            Self::Everything => "all of it",
        })
    }
}

/// One run of an operation and its expected result.
#[derive(Debug, Clone)]
struct Act {
    kind: Kind,
    arguments: Vec<String>,
    input: Vec<u8>,
    /// The note; `None` for a new note until it exists.
    target: Option<NoteId>,
    goal: Goal,
}

/// The note's expected content.
#[derive(Debug, Clone)]
enum Goal {
    /// This title and text, by this session.
    Session {
        session: String,
        title: String,
        body: String,
    },
    Body(String),
    Title(String),
    Scope(Scope),
    Forgotten,
}

impl Goal {
    fn is_met_by(&self, note: &Note) -> bool {
        match self {
            Self::Session { title, body, .. } => note.title == *title && note.body == *body,
            Self::Body(body) => note.body == *body,
            Self::Title(title) => note.title == *title,
            Self::Scope(scope) => note.scope == *scope,
            Self::Forgotten => note.state == State::Forgotten,
        }
    }
}

/// Runs the scenario.
pub(super) fn run(sandbox: &Sandbox, kills: usize, seed: u64, checks: &mut Checks) -> Result {
    let reference_root = tempfile::tempdir()?;
    let mut run = Run {
        sandbox,
        reference: Sandbox::new(reference_root.path(), sandbox.binary())?,
        random: Random::new(seed),
        serial: 0,
        kept: BTreeMap::new(),
        busy: BTreeSet::new(),
        open_sessions: Vec::new(),
        pending: Vec::new(),
        observed: BTreeMap::new(),
        usual: BTreeMap::new(),
        traces: BTreeMap::new(),
        ended: 0,
    };
    run.calibrate(checks)?;
    let mut killed = 0;
    while killed < kills || (run.rarest() < WANTED && killed < 4 * kills) {
        // Blocks the deferred process, which would repair the store before the check.
        let no_work = lock::acquire(sandbox.home(), Subject::Work, TIMEOUT)?;
        let mut in_batch = 0;
        while in_batch < BATCH {
            in_batch += usize::from(run.strike(checks)?);
        }
        killed += in_batch;
        run.kill_a_reindex()?;
        drop(no_work);
        run.heal(checks)?;
    }
    run.summary(killed, checks);
    Ok(())
}

struct Run<'a> {
    sandbox: &'a Sandbox,
    /// A sandbox without kills, for the expected result of a capture.
    reference: Sandbox,
    random: Random,
    serial: usize,
    /// The exact bytes of every note.
    kept: BTreeMap<NoteId, Vec<u8>>,
    /// The notes that this batch changed.
    busy: BTreeSet<NoteId>,
    /// Sessions that have a note from their compaction.
    open_sessions: Vec<String>,
    /// Killed operations to repeat after the repair.
    pending: Vec<Act>,
    /// The running time of each killed process, by the moment that was hit.
    observed: BTreeMap<(Kind, Moment), Vec<Duration>>,
    /// The duration of each operation without kills.
    usual: BTreeMap<Kind, Duration>,
    traces: BTreeMap<(Family, Trace), usize>,
    ended: usize,
}

impl Run<'_> {
    /// Runs every operation a few times without kills, for its duration and for notes to work on.
    fn calibrate(&mut self, checks: &mut Checks) -> Result {
        self.sandbox.plant(200)?;
        self.sandbox.succeeds(&["reindex"], b"", checks)?;
        for (path, _) in self.sandbox.notes().list().notes {
            self.kept.insert(path.id, self.sandbox.notes().bytes(path)?);
        }
        for kind in KINDS {
            let mut times = Vec::new();
            for _ in 0..5 {
                let act = self.draw_act(kind)?;
                let arguments: Vec<&str> = act.arguments.iter().map(String::as_str).collect();
                let before = self.places();
                let began = Instant::now();
                let output = self.sandbox.run(&arguments, &act.input)?;
                times.push(began.elapsed());
                self.check_finished(&act, &before, &output, checks)?;
            }
            times.sort_unstable();
            self.usual.insert(kind, times[times.len() / 2]);
        }
        self.busy.clear();
        let usual: Vec<String> = self
            .usual
            .iter()
            .map(|(kind, time)| format!("{kind:?} {:.1} ms", milliseconds(*time)))
            .collect();
        report(&format!("without kills: {}", usual.join(", ")));
        Ok(())
    }

    /// Starts one process and kills it. Returns false if it had already ended.
    fn strike(&mut self, checks: &mut Checks) -> Result<bool> {
        let kind = self.draw_kind();
        let act = self.draw_act(kind)?;
        let delay = self.draw_delay(kind);
        let before = self.places();
        let leftovers = self.sandbox.leftovers();
        let arguments: Vec<&str> = act.arguments.iter().map(String::as_str).collect();
        let mut child = self.sandbox.command(&arguments, &act.input)?.spawn()?;
        let began = Instant::now();
        // The rest of the wait spins: a sleep is exact to 0.1 ms at best, as long as a rename
        // takes.
        thread::sleep(delay.saturating_sub(Duration::from_micros(300)));
        while began.elapsed() < delay {
            std::hint::spin_loop();
        }
        child.kill()?;
        let output = child.wait_with_output()?;
        if output.status.signal().is_none() {
            self.ended += 1;
            self.check_finished(&act, &before, &output, checks)?;
            return Ok(false);
        }
        let has_leftover = self
            .sandbox
            .leftovers()
            .iter()
            .any(|path| !leftovers.contains(path));
        let trace = self.check_killed(&act, &before, has_leftover, checks)?;
        self.observed
            .entry((kind, trace.moment()))
            .or_default()
            .push(delay);
        *self.traces.entry((kind.family(), trace)).or_default() += 1;
        Ok(true)
    }

    /// Checks the traces of a killed process: a note is complete or absent, and nothing else
    /// changed.
    fn check_killed(
        &mut self,
        act: &Act,
        before: &BTreeMap<NotePath, i64>,
        has_leftover: bool,
        checks: &mut Checks,
    ) -> Result<Trace> {
        let changed = self.check_changes(act, before, checks)?;
        let trace = match changed {
            Some(path) => {
                let stamp = self.sandbox.notes().stamp(path);
                let entry = Index::open(self.sandbox.home())?.get(path.id)?;
                if entry.is_some_and(|entry| entry.path == path && Some(entry.stamp) == stamp) {
                    Trace::Everything
                } else {
                    Trace::NotIndexed
                }
            }
            None if has_leftover => Trace::TemporaryFile,
            None if self.is_in_the_records(act)? => Trace::RecordsOnly,
            None if act
                .target
                .is_some_and(|id| self.sandbox.notes().trashed(id).is_some()) =>
            {
                Trace::TrashOnly
            }
            None => Trace::Nothing,
        };
        // A new note is written again under another id, so there is nothing to repeat.
        if act.kind != Kind::Write {
            self.pending.push(act.clone());
        }
        Ok(trace)
    }

    /// Checks that a process that exited with 0 did its work.
    fn check_finished(
        &mut self,
        act: &Act,
        before: &BTreeMap<NotePath, i64>,
        output: &Output,
        checks: &mut Checks,
    ) -> Result {
        let arguments: Vec<&str> = act.arguments.iter().map(String::as_str).collect();
        checks.that(output.status.success(), || describe_run(&arguments, output));
        let changed = self.check_changes(act, before, checks)?;
        checks.that(changed.is_some(), || {
            format!("{:?} exited with 0 and left no note", act.kind)
        });
        Ok(())
    }

    /// Compares the trees with their earlier state: only the act's own note may differ, and it must
    /// be complete. Returns that note's path if it has the expected content.
    fn check_changes(
        &mut self,
        act: &Act,
        before: &BTreeMap<NotePath, i64>,
        checks: &mut Checks,
    ) -> Result<Option<NotePath>> {
        let after = self.places();
        let notes = self.sandbox.notes();
        let fresh: Vec<NotePath> = after
            .iter()
            .filter(|(path, inode)| before.get(path) != Some(inode))
            .map(|(path, _)| *path)
            .collect();
        let id = act.target.or(fresh.first().map(|path| path.id));
        checks.that(fresh.iter().all(|path| Some(path.id) == id), || {
            format!("{:?} changed other notes: {fresh:?}", act.kind)
        });
        let Some(id) = id else { return Ok(None) };
        self.busy.insert(id);
        let places: Vec<NotePath> = after.keys().filter(|path| path.id == id).copied().collect();
        let is_new = !self.kept.contains_key(&id);
        checks.that(places.len() == 1 || (is_new && places.is_empty()), || {
            format!("{:?} left a note at {places:?}", act.kind)
        });
        let Some(path) = places.first().copied() else {
            return Ok(None);
        };
        let bytes = notes.bytes(path)?;
        let old = self.kept.insert(id, bytes.clone());
        match NoteFile::parse(&bytes, id) {
            Err(error) => {
                checks.that(false, || {
                    format!("{:?} left an incomplete note: {error}", act.kind)
                });
                Ok(None)
            }
            Ok(file) => {
                let note = Note {
                    scope: path.scope,
                    ..file.into_note()
                };
                let is_met = act.goal.is_met_by(&note);
                let is_old = old.as_ref() == Some(&bytes);
                checks.that(is_met || is_old || is_halfway(act, &note), || {
                    format!("{:?} left {path}, which is neither old nor new", act.kind)
                });
                if note.state == State::Forgotten {
                    checks.that(old.is_none() || is_old || notes.trashed(id) == old, || {
                        format!("the bytes of {id} are not in the trash")
                    });
                }
                Ok(Some(path).filter(|_| is_met && !is_old))
            }
        }
    }

    fn is_in_the_records(&self, act: &Act) -> Result<bool> {
        let Goal::Session {
            session,
            title,
            body,
        } = &act.goal
        else {
            return Ok(false);
        };
        let journal = Journal::open(self.sandbox.home(), TIMEOUT)?;
        Ok(journal.is_session_body(session, &format!("{title}\n{body}"))?)
    }

    /// Kills a `reindex` and a `work`, too. The index is derived and must be intact afterwards.
    fn kill_a_reindex(&mut self) -> Result {
        for arguments in [["reindex"], ["work"]] {
            let mut child = self.sandbox.command(&arguments, b"")?.spawn()?;
            thread::sleep(Duration::from_micros(self.random.below(40_000)));
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Checks the store after one undisturbed run, then repeats the killed operations.
    fn heal(&mut self, checks: &mut Checks) -> Result {
        self.sandbox.heals(checks)?;
        let notes = self.sandbox.notes();
        // The deferred process can finish from the part of the event that a killed hook stored.
        for act in self.pending.iter().filter(|act| act.kind.is_hook()) {
            if let Some(path) = act.target.and_then(|id| notes.find(id))
                && is_met(act, &notes)
            {
                self.kept.insert(path.id, notes.bytes(path)?);
            }
        }
        for (id, bytes) in &self.kept {
            let found = notes.find(*id).and_then(|path| notes.bytes(path).ok());
            checks.that(found.as_ref() == Some(bytes), || {
                format!("the note {id} is lost or changed")
            });
        }
        checks.that(notes.list().notes.len() == self.kept.len(), || {
            "there are notes that nobody wrote".to_owned()
        });
        for act in std::mem::take(&mut self.pending) {
            let before = self.places();
            let arguments: Vec<&str> = act.arguments.iter().map(String::as_str).collect();
            let output = self.sandbox.run(&arguments, &act.input)?;
            self.check_changes(&act, &before, checks)?;
            let is_met = is_met(&act, &notes);
            checks.that(is_met, || {
                format!(
                    "{:?} repeated: {}",
                    act.kind,
                    describe_run(&arguments, &output)
                )
            });
        }
        self.busy.clear();
        Ok(())
    }

    /// Returns every note's path and inode. A write always creates a new inode.
    fn places(&self) -> BTreeMap<NotePath, i64> {
        let listing = self.sandbox.notes().list();
        listing
            .notes
            .into_iter()
            .map(|(path, stamp)| (path, stamp.inode))
            .collect()
    }

    /// Draws an operation of the group with the rarest moment.
    fn draw_kind(&mut self) -> Kind {
        let family = MOMENTS
            .iter()
            .flat_map(|moment| [(Family::Capture, *moment), (Family::Write, *moment)])
            .min_by_key(|(family, moment)| self.count(*family, *moment))
            .map_or(Family::Capture, |(family, _)| family);
        let kinds: Vec<Kind> = KINDS
            .into_iter()
            .filter(|kind| kind.family() == family)
            .collect();
        kinds[self.random.index(kinds.len())]
    }

    fn draw_act(&mut self, kind: Kind) -> Result<Act> {
        self.serial += 1;
        let serial = self.serial;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Ok(match kind {
            Kind::PreCompact => {
                let session = format!("session-{serial}");
                self.open_sessions.push(session.clone());
                let goal = self.session_goal(&session, TURNS[0])?;
                Act {
                    kind,
                    arguments: words(&["hook"]),
                    input: self.sandbox.payload("PreCompact", &session),
                    target: Some(NoteId::of_session(&session)),
                    goal,
                }
            }
            Kind::SessionEnd | Kind::Capture => {
                // Half of them resume a session that was compacted.
                let index = self
                    .open_sessions
                    .iter()
                    .position(|session| !self.busy.contains(&NoteId::of_session(session)));
                let session = match index {
                    Some(index) if self.random.below(2) == 0 => self.open_sessions.remove(index),
                    _ => format!("session-{serial}"),
                };
                let goal = self.session_goal(&session, TURNS[1])?;
                let transcript = self.sandbox.transcript_path(&session);
                let (arguments, input) = if kind == Kind::SessionEnd {
                    let payload = self.sandbox.payload("SessionEnd", &session);
                    (words(&["hook"]), payload)
                } else {
                    let path = transcript.to_string_lossy();
                    let arguments = words(&["capture", "--no-sync", "--transcript", &path]);
                    (arguments, Vec::new())
                };
                Act {
                    kind,
                    arguments,
                    input,
                    target: Some(NoteId::of_session(&session)),
                    goal,
                }
            }
            Kind::Write => {
                let title = format!("Fact {serial}");
                let body = format!("The index of part {serial} is locked.\n").repeat(500);
                Act {
                    kind,
                    arguments: words(&["write", "--stdin", "--title", &title]),
                    input: body.clone().into_bytes(),
                    target: None,
                    goal: Goal::Body(body.trim().to_owned()),
                }
            }
            Kind::Edit => {
                let id = self.draw_note(|_| true)?;
                let title = format!("Changed in run {serial}");
                Act {
                    kind,
                    arguments: words(&["edit", &id.to_string(), "--title", &title]),
                    input: Vec::new(),
                    target: Some(id),
                    goal: Goal::Title(title),
                }
            }
            Kind::Move => {
                let id = self.draw_note(|path| path.scope == Scope::Portable)?;
                Act {
                    kind,
                    arguments: words(&["move", &id.to_string(), "--scope", "machine-local"]),
                    input: Vec::new(),
                    target: Some(id),
                    goal: Goal::Scope(Scope::MachineLocal),
                }
            }
            Kind::Forget => {
                let id = self.draw_note(|_| true)?;
                Act {
                    kind,
                    arguments: words(&["forget", &id.to_string()]),
                    input: Vec::new(),
                    target: Some(id),
                    goal: Goal::Forgotten,
                }
            }
        })
    }

    /// Writes a session's transcript and captures it without kills for the expected note.
    fn session_goal(&self, session: &str, turns: usize) -> Result<Goal> {
        self.sandbox.transcript(session, turns)?;
        let transcript = self.sandbox.transcript_path(session);
        let path = transcript.to_string_lossy();
        self.reference
            .run(&["capture", "--transcript", &path], b"")?;
        let notes = self.reference.notes();
        let place = notes
            .find(NoteId::of_session(session))
            .ok_or("an undisturbed capture left no note")?;
        let note = notes.read(place)?.note();
        Ok(Goal::Session {
            session: session.to_owned(),
            title: note.title,
            body: note.body,
        })
    }

    /// Draws a note that can be changed and that this batch has not changed.
    fn draw_note(&mut self, is_fit: impl Fn(NotePath) -> bool) -> Result<NoteId> {
        let notes = self.sandbox.notes();
        let planted: Vec<NotePath> = notes
            .list()
            .notes
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.folder == NoteType::Semantic)
            .filter(|path| is_fit(*path) && !self.busy.contains(&path.id))
            .filter(|path| !notes.is_forgotten(*path))
            .collect();
        if planted.is_empty() {
            return Err("there are no notes left to change".into());
        }
        Ok(planted[self.random.index(planted.len())].id)
    }

    /// Draws a running time: anywhere, or near the rarest moment.
    fn draw_delay(&mut self, kind: Kind) -> Duration {
        let usual = self.usual.get(&kind).copied().unwrap_or_default();
        if self.random.below(3) == 0 {
            return usual.mul_f64(1.3 * self.random.fraction());
        }
        let family = kind.family();
        let rarest = MOMENTS
            .into_iter()
            .min_by_key(|moment| self.count(family, *moment))
            .unwrap_or(Moment::Inside);
        let mut inside = self
            .observed
            .get(&(kind, Moment::Inside))
            .cloned()
            .unwrap_or_default();
        inside.sort_unstable();
        let middle = inside.get(inside.len() / 2).copied();
        let (from, to) = match rarest {
            Moment::Before => (Duration::ZERO, middle.unwrap_or(usual)),
            Moment::Inside => match middle {
                Some(middle) => (middle.mul_f64(0.9), middle.mul_f64(1.1)),
                None => (usual / 2, usual),
            },
            // The time after the last write is a small part of the run.
            Moment::After => (middle.unwrap_or(usual / 2), usual.mul_f64(1.1)),
        };
        from + to.saturating_sub(from).mul_f64(self.random.fraction())
    }

    fn count(&self, family: Family, moment: Moment) -> usize {
        self.traces
            .iter()
            .filter(|((of, trace), _)| *of == family && trace.moment() == moment)
            .map(|(_, count)| count)
            .sum()
    }

    fn rarest(&self) -> usize {
        [Family::Capture, Family::Write]
            .into_iter()
            .flat_map(|family| MOMENTS.map(|moment| self.count(family, moment)))
            .min()
            .unwrap_or(0)
    }

    fn summary(&self, killed: usize, checks: &mut Checks) {
        report(&format!(
            "{killed} killed, {} had ended before; {} notes in the end",
            self.ended,
            self.kept.len()
        ));
        for family in [Family::Capture, Family::Write] {
            let [before, inside, after] = MOMENTS.map(|moment| self.count(family, moment));
            let traces: Vec<String> = self
                .traces
                .iter()
                .filter(|((of, trace), _)| *of == family && trace.moment() == Moment::Inside)
                .map(|((_, trace), count)| format!("{count} {trace}"))
                .collect();
            report(&format!(
                "{family:?}: {before} before, {inside} inside ({}), {after} after",
                traces.join(", ")
            ));
        }
        checks.that(self.rarest() >= WANTED, || {
            format!("a moment was hit only {} times", self.rarest())
        });
    }
}

/// Returns whether the act's note has the expected content.
fn is_met(act: &Act, notes: &Notes) -> bool {
    act.target
        .and_then(|id| notes.find(id))
        .and_then(|path| notes.read(path).ok())
        .is_some_and(|stored| act.goal.is_met_by(&stored.note()))
}

/// Returns whether a note that moves to another tree already names its destination.
fn is_halfway(act: &Act, note: &Note) -> bool {
    act.kind == Kind::Move && note.state == State::Active
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
