//! Why notes are injected or withheld. The texts are stored in the journal and shown by `why`.

use anamnesis_session::words;

words! {
    /// Why a note is injected or answers a question.
    InjectionReason {
        /// It matches.
        MatchesQuestion = "matches the question",
        /// It supersedes a note that matches.
        ReplacesMatch = "replaces a matching note",
        /// It changes what a matching note says.
        ChangesMatch = "changes what a matching note says",
        /// A link leads to it from a note that matches.
        LinkedToMatch = "linked to a matching note",
        /// It may match: a pointer leads to it.
        MayMatch = "may match, so a pointer leads to it",
    }
}

words! {
    /// Why a note that was found is not injected.
    WithholdingReason {
        /// It has too few of the words.
        TooFewWords = "too few words in common",
        /// It does not reach the threshold.
        WeakMatch = "weak match",
        /// It does not reach the higher threshold of a benched note.
        WeakMatchNeverUsed = "weak match for a note that was never used",
        /// It may match, but a pointer leads to another note.
        OtherPointer = "may match, but a pointer leads to another note",
        /// Other notes match much better.
        OthersMatchBetter = "other notes match much better",
        /// A note in use supersedes it.
        Replaced = "replaced",
        /// The limit of notes is reached.
        NoRoom = "no room for more notes",
        /// Its file or its index entry is gone.
        Gone = "the note no longer exists",
        /// It may not surface in this project.
        NotInUseHere = "the note is not in use in this project",
        /// The context has seen it.
        GivenBefore = "injected before",
        /// The limit of session notes is reached.
        EnoughSessionNotes = "enough session notes are included",
        /// The limit of notes of its session is reached.
        EnoughOfItsSession = "enough notes of its session are included",
        /// An injected note says the same.
        Duplicate = "an included note says the same",
    }
}

words! {
    /// Why nothing is injected.
    Silence {
        /// The prompt has too few meaningful words.
        TooFewWords = "the prompt has too few meaningful words",
        /// No note contains the words.
        NothingFound = "no note contains these words",
        /// No note matches well enough.
        NothingFits = "no note matches well enough",
        /// The context has seen all matching notes.
        AlreadySeen = "all matching notes were injected before",
    }
}
