//! Blocks Ctrl-C during a few writes that must not be half done.

/// Guard that disables Ctrl-C in the terminal until it is dropped.
pub struct WithoutInterrupts {
    #[cfg(unix)]
    before: Option<(std::fs::File, rustix::termios::Termios)>,
}

/// Disables Ctrl-C in the terminal, if there is one.
pub fn without_interrupts() -> WithoutInterrupts {
    #[cfg(unix)]
    {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let quiet = || {
            let terminal = std::fs::File::open("/dev/tty").ok()?;
            // Changing the terminal from the background would stop this process. Ctrl-C does not
            // reach it anyway.
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
            // If the terminal is gone, there is nothing to restore.
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}
