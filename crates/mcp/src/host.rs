//! The interface to the surrounding program, for everything that needs git, the network, the
//! settings or files other than notes.

use anamnesis_app::failure::Failure;
use anamnesis_note::{agent_policy::Review, usage_log::Usage};
use anamnesis_store::notes::NotePath;
use chrono::{DateTime, Utc};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

/// The program that runs the server.
pub trait Host: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;

    /// Returns the current setting for how notes of a model are reviewed.
    fn review(&self) -> Review;

    /// Returns the state of sync.
    fn standing(&self) -> Standing;

    /// Signals that a tool changed notes, so that they are committed soon. The server itself never
    /// runs git: nobody has to wait for it, and a session's changes become one commit.
    fn changed(&self);

    /// Requests a repair of `journal.db` after a tool met damage in it. It runs in the background.
    fn met_damage(&self);

    /// Activates the notes that the reflection with this key proposed, and returns the reply.
    /// Called only after the person accepts in the client's dialog.
    ///
    /// # Errors
    /// The reason why the notes stay pending.
    fn approve(&self, reflection: &str) -> Result<String, Unable>;

    /// Forgets a note: moves its text to the trash and removes it from everything derived from it.
    /// `reason` is a line for this machine's log.
    ///
    /// # Errors
    /// The reason why the note is unchanged.
    fn forget(&self, note: NotePath, reason: Option<&str>) -> Result<(), Unable>;

    /// Records feedback about notes in a session. Returns whether other machines get it, too.
    ///
    /// # Errors
    /// The reason why nothing was recorded.
    fn tell(&self, session: Option<&str>, usage: &Usage) -> Result<bool, Unable>;

    /// Syncs the notes with the person's other machines.
    ///
    /// # Errors
    /// The reason why the sync failed.
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

/// The result of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Whether the remote has everything that is here.
    pub pushed: bool,
    /// How many commits came from the remote.
    pub pulled: usize,
    /// How many conflicting texts were found; both versions are kept.
    pub conflicts: usize,
    /// The newest commit.
    pub head: Option<String>,
    /// The result in a few words.
    pub detail: String,
    /// What was not accepted from the remote, one line each.
    pub problems: Vec<String>,
    /// What was held back until the person decides.
    pub held: Option<String>,
}
