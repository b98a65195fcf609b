//! The MCP reference server "memory": one JSON object per line, an entity or a relation.
//!
//! An entity becomes a note. Its relations are lines of the note that name the other entity, which
//! links the notes by title. The file has no dates and no projects.

use std::collections::HashMap;

use anamnesis_note::note::Kind;

use super::{
    Input, Memory, SourceRecord, json,
    record::{bullets, text, texts},
};
use crate::Error;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let lines = json::lines(&input.path)?;
    let mut relations: HashMap<&str, Vec<String>> = HashMap::new();
    for line in lines.iter().flatten() {
        if let (Some(from), Some(to)) = (text(line, "from"), text(line, "to")) {
            let word = text(line, "relationType").unwrap_or("related to");
            let of_entity = relations.entry(from).or_default();
            of_entity.push(format!("{word} [[{to}]]"));
        }
    }
    let mut records = Vec::new();
    for line in &lines {
        let Some(line) = line else {
            records.push(SourceRecord::skipped("no valid JSON"));
            continue;
        };
        if text(line, "type") == Some("relation") {
            continue;
        }
        let Some(name) = text(line, "name") else {
            records.push(SourceRecord::skipped("without a name"));
            continue;
        };
        let mut facts = texts(line, "observations");
        facts.extend(relations.get(name).into_iter().flatten().cloned());
        let body = bullets("", &facts).unwrap_or_default();
        let kind = match text(line, "entityType") {
            Some("preference") => Kind::Preference,
            _ => Kind::Fact,
        };
        let tag = text(line, "entityType").map(str::to_owned);
        records.push(SourceRecord {
            tags: tag.into_iter().collect(),
            is_versioned: true,
            ..SourceRecord::new(name.to_owned(), kind, name.to_owned(), body)
        });
    }
    Ok(records.into())
}
