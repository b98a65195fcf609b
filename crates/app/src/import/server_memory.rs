//! The MCP reference server "memory": one JSON object per line, an entity or a relation.
//!
//! An entity becomes a note. Its relations are lines of the note that name the other entity, which
//! links the notes by title. The file has no dates and no projects.

use anamnesis_note::{draft::safe_line, id::NoteId, note::Kind};
use anamnesis_store::scratch::Scratch;

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

/// The table of the relations by a hash of their entity and the line's number.
const RELATIONS: &str = "relation";

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let relations = Scratch::new(&[RELATIONS])?;
    json::each_line(
        &input.path,
        json::open(&input.path)?,
        &mut |number, line| {
            if let Some(line) = line
                && let (Some(from), Some(to)) = (text(&line, "from"), text(&line, "to"))
            {
                let word = text(&line, "relationType").unwrap_or("related to");
                let entity = NoteId::made_of(from).to_bytes();
                let key = [entity.as_slice(), &number.to_be_bytes()].concat();
                // The table is a file, and no raw text is written.
                let fact = safe_line(&format!("{word} [[{to}]]"));
                if !fact.is_empty() {
                    relations.set(RELATIONS, &key, fact.as_bytes())?;
                }
            }
            Ok(())
        },
    )?;
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
            let entity = NoteId::made_of(name).to_bytes();
            relations.each(RELATIONS, &entity, |_, fact| {
                facts.push(String::from_utf8_lossy(fact).into_owned());
                Ok::<_, Error>(())
            })?;
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
