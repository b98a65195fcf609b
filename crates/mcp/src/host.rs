//! What the program around a server does for it: all that needs git, the network, this machine's
//! settings, or files beside the notes.

use anamnesis_app::failure::Failure;
use anamnesis_note::{agent_policy::Review, usage_log::Usage};
use anamnesis_store::notes::NotePath;
use chrono::{DateTime, Utc};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

/// The program around a server.
pub trait Host: Send + Sync {
    /// The time that has come by now.
    fn now(&self) -> DateTime<Utc>;

    /// What becomes of what a model writes, as the person has it set now.
    fn review(&self) -> Review;

    /// How sync stands.
    fn standing(&self) -> Standing;

    /// Says that a tool changed notes, so that they are committed soon. The server itself never touches
    /// git: nobody waits for that, and a session's changes are one commit.
    fn changed(&self);

    /// Requests a repair of `journal.db` after a tool met damage in it. It runs in the background.
    fn met_damage(&self);

    /// Lets the notes be used that a reflection of this key proposed; what came of it, in words. Only a
    /// dialogue that the client shows the person may lead here.
    ///
    /// # Errors
    /// Why they wait as before.
    fn approve(&self, reflection: &str) -> Result<String, Unable>;

    /// Forgets a note: its text goes to the trash, and out of everything that was made of it. `reason`
    /// is a line for this machine's log.
    ///
    /// # Errors
    /// Why it is as it was.
    fn forget(&self, note: NotePath, reason: Option<&str>) -> Result<(), Unable>;

    /// Takes note of what was said of notes in a session; tells whether other machines are told, too.
    ///
    /// # Errors
    /// Why nothing was noted.
    fn tell(&self, session: Option<&str>, usage: &Usage) -> Result<bool, Unable>;

    /// Brings the notes of the person's machines together.
    ///
    /// # Errors
    /// Why that could not be done.
    fn sync(&self) -> Result<Synced, Unable>;
}

/// Why the program could not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unable {
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl From<Failure> for Unable {
    fn from(failure: Failure) -> Self {
        let hint = failure.next_step().unwrap_or("anamnesis doctor");
        Self {
            message: failure.message().to_owned(),
            hint: format!("a person can: {hint}"),
        }
    }
}

/// How sync stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct Standing {
    /// Whether the notes have a repository.
    pub initialized: bool,
    /// Where they travel to, without a password.
    pub remote: Option<String>,
    /// The newest commit.
    pub head: Option<String>,
    /// Whether notes wait to be committed.
    pub dirty: bool,
    /// How it stands, in words.
    pub detail: String,
}

/// What became of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Whether the remote has everything that is here.
    pub pushed: bool,
    /// Commits that came from the remote.
    pub pulled: usize,
    /// Texts that clashed; both are kept.
    pub conflicts: usize,
    /// The newest commit.
    pub head: Option<String>,
    /// What became of it, in a few words.
    pub detail: String,
    /// What was found in the remote and not taken, a line each.
    pub problems: Vec<String>,
    /// What waits for the person.
    pub held: Option<String>,
}
