//! Tool calls: warns before a call, points to notes at a file, and recalls known fixes after a failure.

use anamnesis_app::{file_pointer, tool_hooks};
use anamnesis_session::hook::ToolCall;
use anamnesis_store::journal::{FILE, WARNING};

use super::{Handled, Hook};

impl Hook {
    /// Warns of a call that is about to run. Without the journal, earlier warnings are unknown, so
    /// the call runs without one.
    pub(super) fn before_tool(&self, call: &ToolCall, handled: &mut Handled) {
        if let Ok(journal) = &self.journal
            && self.context.config.recall.tool
        {
            let whom = (self.session_id.as_str(), self.agent.as_str());
            let found = tool_hooks::warn(&self.context, journal, || self.project(), whom, call);
            handled.take(WARNING, found);
        }
    }

    /// Points to a note that names the file of a call. Claude reads a file before it edits it, so the pointer
    /// comes with the read.
    pub(super) fn at_file(&self, call: &ToolCall, handled: &mut Handled) {
        if let Ok(journal) = &self.journal
            && self.context.config.recall.pointers
        {
            let found = file_pointer::at_file(
                &self.context,
                journal,
                || self.project(),
                &self.folder,
                (&self.session_id, &self.agent),
                call,
            );
            handled.take(FILE, found);
        }
    }

    /// Says what fixed the failure before, for the first of these calls with a known fix.
    pub(super) fn after_failure(&self, calls: &[ToolCall], handled: &mut Handled) {
        let Ok(journal) = &self.journal else {
            return;
        };
        let failed = |call: &&ToolCall| call.error.is_some() && !call.is_interrupt;
        let mut failed = calls.iter().filter(failed).peekable();
        if failed.peek().is_none() || !self.context.config.recall.tool {
            return;
        }
        let ledger = self.ledger(&self.session_id, &self.agent);
        let known = failed.find_map(|call| {
            let (context, session) = (&self.context, &self.session_id);
            tool_hooks::known_fix(context, journal, self.project(), session, &ledger, call)
        });
        handled.take("failure", Ok(known));
    }
}
