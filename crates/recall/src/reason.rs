//! Why notes are injected or withheld. The texts are stored in the journal and shown by `why`.

/// Why a note is injected or answers a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectionReason {
    /// It matches.
    MatchesQuestion,
    /// It supersedes a note that matches.
    ReplacesMatch,
    /// It changes what a matching note says.
    ChangesMatch,
    /// A link leads to it from a note that matches.
    LinkedToMatch,
    /// It may match: a pointer leads to it.
    MayMatch,
}

impl InjectionReason {
    /// Returns the text for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MatchesQuestion => "matches the question",
            Self::ReplacesMatch => "replaces a matching note",
            Self::ChangesMatch => "changes what a matching note says",
            Self::LinkedToMatch => "linked to a matching note",
            Self::MayMatch => "may match, so a pointer leads to it",
        }
    }
}

/// Why a note that was found is not injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithholdingReason {
    /// It has too few of the words.
    TooFewWords,
    /// It does not reach the threshold.
    WeakMatch,
    /// It does not reach the higher threshold of a benched note.
    WeakMatchNeverUsed,
    /// It may match, but a pointer leads to another note.
    OtherPointer,
    /// Other notes match much better.
    OthersMatchBetter,
    /// A note in use supersedes it.
    Replaced,
    /// The limit of notes is reached.
    NoRoom,
    /// Its file or its index entry is gone.
    Gone,
    /// It may not surface in this project.
    NotInUseHere,
    /// The context has seen it.
    GivenBefore,
    /// The limit of session notes is reached.
    EnoughSessionNotes,
    /// The limit of notes of its session is reached.
    EnoughOfItsSession,
    /// An injected note says the same.
    Duplicate,
}

impl WithholdingReason {
    /// Returns the text for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFewWords => "too few words in common",
            Self::WeakMatch => "weak match",
            Self::WeakMatchNeverUsed => "weak match for a note that was never used",
            Self::OtherPointer => "may match, but a pointer leads to another note",
            Self::OthersMatchBetter => "other notes match much better",
            Self::Replaced => "replaced",
            Self::NoRoom => "no room for more notes",
            Self::Gone => "the note no longer exists",
            Self::NotInUseHere => "the note is not in use in this project",
            Self::GivenBefore => "injected before",
            Self::EnoughSessionNotes => "enough session notes are included",
            Self::EnoughOfItsSession => "enough notes of its session are included",
            Self::Duplicate => "an included note says the same",
        }
    }
}
