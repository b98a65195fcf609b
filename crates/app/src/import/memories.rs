//! The plugin "memories": its SQLite database of version 12. Kinds and relations map one to one.

use std::collections::HashMap;

use anamnesis_note::note::{Kind, Severity, Status};
use serde_json::Value;

use super::{
    Format, Hints, Input, Record, Take,
    record::{id_of, text, texts, time},
    row_value, sqlite_of,
};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "memories",
    places: &[".memories/memories.db"],
    is_in: |_| false,
    hints: |_| {
        Ok(Hints {
            has_links: true,
            ..Hints::default()
        })
    },
    read,
};

/// The latest version that is known.
const MAX_VERSION: i64 = 12;

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let database = sqlite_of(input, FORMAT.name, "atoms")?;
    let version = database.version()?;
    if version > MAX_VERSION {
        return Err(Error::failed(format!(
            "the database has version {version} of memories, but only versions up to \
             {MAX_VERSION} are known; nothing was imported"
        ))
        .hint("update anamnesis"));
    }
    let mut links: HashMap<String, Vec<(String, String, Option<f64>)>> = HashMap::new();
    if !database.columns("synapses")?.is_empty() {
        database.each("SELECT * FROM synapses ORDER BY id", |row| {
            let row = Value::Object(row);
            let relation = text(&row, "relationship").unwrap_or_default().to_owned();
            let weight = row.get("strength").and_then(Value::as_f64);
            let of_atom = links.entry(id_of(&row, "source_id")).or_default();
            of_atom.push((
                relation,
                format!("atoms/{}", id_of(&row, "target_id")),
                weight,
            ));
            Ok::<(), Error>(())
        })?;
    }
    database.each("SELECT * FROM atoms ORDER BY id", |row| {
        let number = row.get("id").map(Value::to_string).unwrap_or_default();
        let id = format!("atoms/{number}");
        let row = match row_value(row) {
            Ok(row) => row,
            Err(reason) => return take(Record::skipped(id, reason)),
        };
        if row.get("is_deleted").and_then(Value::as_i64) == Some(1) {
            return take(Record::skipped(id, "deleted there"));
        }
        let kind = text(&row, "type").and_then(|word| word.parse().ok());
        let body = text(&row, "content").unwrap_or_default().to_owned();
        let record = Record::new(id, kind.unwrap_or(Kind::Fact), String::new(), body);
        let region = text(&row, "region").and_then(|region| region.strip_prefix("project:"));
        take(Record {
            project: text(&row, "source_project").or(region).map(str::to_owned),
            session: text(&row, "source_session").map(str::to_owned),
            tags: texts(&row, "tags"),
            links: links.remove(&number).unwrap_or_default(),
            instead: text(&row, "instead").map(str::to_owned),
            severity: text(&row, "severity").and_then(|word| word.parse::<Severity>().ok()),
            status: text(&row, "task_status").and_then(|word| word.parse::<Status>().ok()),
            ..record.at(time(&row, "created_at"), time(&row, "updated_at"))
        })
    })
}
