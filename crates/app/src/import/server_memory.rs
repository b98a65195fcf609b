//! The MCP reference server "memory": one JSON object per line, an entity or a relation.
//!
//! An entity becomes a note. Its relations are lines of the note that name the other entity, which
//! links the notes by title. The file has no dates and no projects.

use std::collections::BTreeMap;

use anamnesis_note::note::Kind;

use super::{
    Format, Input, NO_HINTS, Record, Take, json,
    record::{bullets, text, texts},
};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "server-memory",
    places: &[],
    is_in: |_| false,
    hints: NO_HINTS,
    read,
};

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let mut relations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    json::each_line(&input.path, json::open(&input.path)?, &mut |_, line| {
        if let Some(line) = line
            && let (Some(from), Some(to)) = (text(&line, "from"), text(&line, "to"))
        {
            let word = text(&line, "relationType").unwrap_or("related to");
            let of_entity = relations.entry(from.to_owned()).or_default();
            of_entity.push(format!("{word} [[{to}]]"));
        }
        Ok(())
    })?;
    json::each_line(
        &input.path,
        json::open(&input.path)?,
        &mut |number, line| {
            let Some(line) = line else {
                return take(Record::skipped(format!("line {number}"), "no valid JSON"));
            };
            if text(&line, "type") == Some("relation") {
                return Ok(());
            }
            let Some(name) = text(&line, "name") else {
                return take(Record::skipped(format!("line {number}"), "without a name"));
            };
            let mut facts = texts(&line, "observations");
            facts.extend(relations.remove(name).unwrap_or_default());
            let body = bullets("", &facts).unwrap_or_default();
            let kind = match text(&line, "entityType") {
                Some("preference") => Kind::Preference,
                _ => Kind::Fact,
            };
            let record = Record::new(name.to_owned(), kind, name.to_owned(), body);
            take(Record {
                tags: text(&line, "entityType")
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                is_versioned: true,
                ..record
            })
        },
    )
}
