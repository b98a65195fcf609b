//! The machines that wrote notes, and when each was last seen.

use std::collections::BTreeMap;

use anamnesis_store::index::Index;
use anamnesis_sync::name_in_commits;
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use crate::{Error, context::Context};

/// The known facts of a machine.
#[derive(Debug, Default)]
pub struct Machine {
    /// The number of its notes.
    pub notes: usize,
    /// The time of its last commit here.
    pub seen: Option<DateTime<Utc>>,
}

/// Returns the machines by name, this one included.
pub fn machines(context: &Context, index: &Index) -> Result<BTreeMap<String, Machine>, Error> {
    let counts = index.counts()?;
    let mut machines: BTreeMap<String, Machine> = BTreeMap::new();
    for (name, notes) in counts.by_machine {
        machines.entry(one_line(&name)).or_default().notes += notes;
    }
    machines.entry(context.machine_id()).or_default();
    if let Some(repository) = context.repository()? {
        for (name, time) in repository.last_seen()? {
            // Commits store the name as one plain word; notes store it as typed.
            let known = machines
                .iter_mut()
                .find(|(known, _)| name_in_commits(known) == name);
            let machine = match known {
                Some((_, machine)) => machine,
                None => machines.entry(one_line(&name)).or_default(),
            };
            machine.seen = machine.seen.max(Some(time));
        }
    }
    Ok(machines)
}

/// Returns the machines in the order for a person: this one, then the most recently seen.
pub fn in_order(context: &Context, machines: BTreeMap<String, Machine>) -> Vec<(String, Machine)> {
    let own = context.machine_id();
    let mut list: Vec<_> = machines.into_iter().collect();
    list.sort_by_key(|(name, machine)| (*name != own, std::cmp::Reverse(machine.seen)));
    list
}
