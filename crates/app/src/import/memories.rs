//! The plugin "memories": its SQLite database of version 12. Kinds and relations map one to one.

use std::collections::HashMap;

use anamnesis_note::note::{Kind, Severity, Status};
use serde_json::Value;

use super::{
    Input, Memory, SourceRecord, known_version,
    record::{SourceLink, id_of, text, texts, time},
};
use crate::Error;

/// The latest version that is known.
const MAX_VERSION: i64 = 12;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let database = input.table("memories", "atoms")?;
    known_version("memories", database.version()?, MAX_VERSION)?;
    let mut links: HashMap<String, Vec<SourceLink>> = HashMap::new();
    let synapses = database.rows_of("synapses", "ORDER BY id")?;
    for row in synapses.iter().flatten() {
        let relation = text(row, "relationship").unwrap_or_default().to_owned();
        let weight = row.get("strength").and_then(Value::as_f64);
        let target = format!("atoms/{}", id_of(row, "target_id"));
        let of_atom = links.entry(id_of(row, "source_id")).or_default();
        of_atom.push((relation, target, weight));
    }
    let rows = database.rows_of("atoms", "ORDER BY id")?;
    Ok(SourceRecord::from_rows(rows, |row| {
        let links = links.remove(&id_of(row, "id")).unwrap_or_default();
        atom(row, links)
    })
    .into())
}

fn atom(row: &Value, links: Vec<SourceLink>) -> SourceRecord {
    if row.get("is_deleted").and_then(Value::as_i64) == Some(1) {
        return SourceRecord::skipped("deleted there");
    }
    let kind = text(row, "type").and_then(|word| word.parse().ok());
    let body = text(row, "content").unwrap_or_default().to_owned();
    let id = format!("atoms/{}", id_of(row, "id"));
    let record = SourceRecord::new(id, kind.unwrap_or(Kind::Fact), String::new(), body);
    let region = text(row, "region").and_then(|region| region.strip_prefix("project:"));
    SourceRecord {
        project: text(row, "source_project").or(region).map(str::to_owned),
        session: text(row, "source_session").map(str::to_owned),
        tags: texts(row, "tags"),
        links,
        instead: text(row, "instead").map(str::to_owned),
        severity: text(row, "severity").and_then(|word| word.parse::<Severity>().ok()),
        status: text(row, "task_status").and_then(|word| word.parse::<Status>().ok()),
        ..record.at(time(row, "created_at"), time(row, "updated_at"))
    }
}
