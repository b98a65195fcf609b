//! Tool calls: a warning before one, and after a failure what fixed it before.

use anamnesis_app::tool_hooks;
use anamnesis_session::hook::ToolCall;
use anamnesis_store::{index, journal::WARNING};

use super::{Handled, Hook};

impl Hook {
    /// Warns of a call that is about to run. Without the records nothing is known of what was said
    /// before, and the call goes its way.
    pub(super) fn before_tool(&self, call: &ToolCall) -> Handled {
        let mut handled = Handled::default();
        let Ok(journal) = &self.journal else {
            return handled;
        };
        if !self.context.config.recall.tool {
            return handled;
        }
        let whom = (self.session_id.as_str(), self.agent.as_str());
        match tool_hooks::warn(&self.context, journal, self.project(), whom, call) {
            Ok(Some(found)) => handled.take(WARNING, found),
            // The next event that may start the deferred process finds the index as it is.
            Ok(None) | Err(index::Error::Missing | index::Error::Foreign(_)) => {}
            Err(error) => handled.errors.push(error.to_string()),
        }
        handled
    }

    /// Says what mended a failure before, the first of these of which that is known.
    pub(super) fn after_failure(&self, calls: &[ToolCall]) -> Handled {
        let mut handled = Handled::default();
        let Ok(journal) = &self.journal else {
            return handled;
        };
        let failed = |call: &&ToolCall| call.error.is_some() && !call.is_interrupt;
        let mut failed = calls.iter().filter(failed).peekable();
        if failed.peek().is_none() || !self.context.config.recall.failure {
            return handled;
        }
        let ledger = self.ledger(&self.agent);
        let known = failed.find_map(|call| {
            let (context, session) = (&self.context, &self.session_id);
            tool_hooks::mended(context, journal, self.project(), session, &ledger, call)
        });
        if let Some(found) = known {
            handled.take("failure", found);
        }
        handled
    }
}
