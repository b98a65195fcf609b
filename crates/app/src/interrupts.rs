//! Keeps Ctrl-C away from a few writes that are whole or not at all.

/// As long as this is kept, Ctrl-C in the terminal is a sign like any other: for a few writes that are
/// whole or not at all.
pub struct WithoutInterrupts {
    #[cfg(unix)]
    before: Option<(std::fs::File, rustix::termios::Termios)>,
}

/// Keeps Ctrl-C away for a moment, where there is a terminal.
pub fn without_interrupts() -> WithoutInterrupts {
    #[cfg(unix)]
    {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let quiet = || {
            let terminal = std::fs::File::open("/dev/tty").ok()?;
            // A process in the background would be stopped for touching it, and Ctrl-C is not for it.
            let group = rustix::termios::tcgetpgrp(&terminal).ok()?;
            if group != rustix::process::getpgrp() {
                return None;
            }
            let before = tcgetattr(&terminal).ok()?;
            let mut modes = before.clone();
            modes.local_modes.remove(LocalModes::ISIG);
            tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
            Some((terminal, before))
        };
        WithoutInterrupts { before: quiet() }
    }
    #[cfg(not(unix))]
    WithoutInterrupts {}
}

#[cfg(unix)]
impl Drop for WithoutInterrupts {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some((terminal, before)) = &self.before {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}
