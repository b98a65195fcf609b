//! Moves records from the spool to the journal.

use anamnesis_store::{
    journal::{self, Journal},
    spool::Spool,
};

use crate::{context::Context, spawn::UNREADABLE};

/// How many records of the spool are added in one transaction.
const DRAINED: usize = 50;

/// Moves pending records from the spool to the journal, and returns how many.
pub fn drain(context: &Context, journal: &Journal) -> Result<usize, journal::Error> {
    let spool = Spool::new(&context.home);
    let mut drained = 0;
    loop {
        let mut waiting = spool.waiting(DRAINED);
        if waiting.is_empty() {
            return Ok(drained);
        }
        journal.in_transaction(|journal| journal.take_waiting(&mut waiting))?;
        for waiting in &waiting {
            match spool.put_away(waiting) {
                Ok(is_unreadable) => {
                    drained += usize::from(waiting.record.is_some());
                    if is_unreadable {
                        context.log(UNREADABLE);
                    }
                }
                Err(error) => {
                    context.log(&format!("spool: {error}"));
                    // Without this return, the loop would read the same records forever.
                    return Ok(drained);
                }
            }
        }
    }
}
