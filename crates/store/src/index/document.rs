//! The properties of notes that ranking needs, encoded in one BLOB for each block of notes.

use std::num::NonZeroU16;

use anamnesis_note::note::{
    Kind, Note, NoteType, REFLECTED_TAG, Scope, State, Visibility, parse_timestamp,
};

use super::postings::BLOCK_LENGTH;

/// The number of bytes per note in the BLOB of a block.
pub(super) const DOCUMENT_LENGTH: usize = 12;

/// The properties of a note that ranking needs, without reading its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// The number of words, those of the title weighted; at most 65,535.
    pub length: u16,
    /// The number of its project, see `Documents::projects`.
    pub project: u32,
    /// When its content last changed, seconds since 1970; 0 if the file does not say.
    pub updated: u32,
    /// From the lowest bit: 1, type (2 bits), kind (3), state (2), scope, superseded, reflected. Kept
    /// packed, because a query visits every note but reads few properties of each.
    properties: NonZeroU16,
}

const TYPE: u16 = 1;
const KIND: u16 = 3;
const STATE: u16 = 6;
const SCOPE: u16 = 8;
const SUPERSEDED: u16 = 9;
const REFLECTED: u16 = 10;

impl Document {
    /// Returns the type.
    pub fn note_type(&self) -> NoteType {
        self.property(TYPE, 3, NoteType::ALL)
            .unwrap_or(NoteType::Semantic)
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.property(KIND, 7, Kind::ALL).unwrap_or(Kind::Fact)
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.property(STATE, 3, State::ALL)
            .unwrap_or(State::Forgotten)
    }

    /// Returns the scope.
    pub fn scope(&self) -> Scope {
        self.property(SCOPE, 1, Scope::ALL)
            .unwrap_or(Scope::MachineLocal)
    }

    /// Returns whether an active note supersedes it.
    pub fn is_superseded(&self) -> bool {
        self.properties.get() >> SUPERSEDED & 1 == 1
    }

    /// Returns whether a reflection has used it.
    pub fn is_reflected(&self) -> bool {
        self.properties.get() >> REFLECTED & 1 == 1
    }

    /// Returns what decides whether it may be shown.
    pub fn visibility(&self) -> Visibility {
        Visibility {
            state: self.state(),
            kind: self.kind(),
            note_type: self.note_type(),
            is_reflected: self.is_reflected(),
            is_superseded: self.is_superseded(),
        }
    }

    /// Returns the value of a property. Stored values are checked, so the position is in the list.
    fn property<T: Copy>(&self, place: u16, bits: u16, all: &[T]) -> Option<T> {
        all.get(usize::from(self.properties.get() >> place & bits))
            .copied()
    }

    pub(super) fn from_note(note: &Note, project: u32, length: u32) -> Self {
        let updated = parse_timestamp(&note.updated_at).map_or(0, |time| time.timestamp().max(0));
        let properties = place(NoteType::ALL, &note.note_type) << TYPE
            | place(Kind::ALL, &note.kind()) << KIND
            | place(State::ALL, &note.state) << STATE
            | place(Scope::ALL, &note.scope) << SCOPE
            | u16::from(note.has_tag(REFLECTED_TAG)) << REFLECTED;
        Self {
            length: u16::try_from(length).unwrap_or(u16::MAX),
            project,
            updated: u32::try_from(updated).unwrap_or(u32::MAX),
            properties: NonZeroU16::MIN | properties,
        }
    }

    pub(super) fn supersede(&mut self, is_superseded: bool) {
        let others = self.properties.get() & !(1 << SUPERSEDED);
        self.properties = NonZeroU16::MIN | others | u16::from(is_superseded) << SUPERSEDED;
    }

    /// Encodes length, properties, project and time.
    pub(super) fn encode(&self) -> [u8; DOCUMENT_LENGTH] {
        let mut bytes = [0; DOCUMENT_LENGTH];
        bytes[..2].copy_from_slice(&self.length.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.properties.get().to_le_bytes());
        bytes[4..8].copy_from_slice(&self.project.to_le_bytes());
        bytes[8..].copy_from_slice(&self.updated.to_le_bytes());
        bytes
    }

    /// Decodes a note, if there is one. [`Self::is_sound`] checks whether it is valid.
    pub(super) fn decode(bytes: &[u8; DOCUMENT_LENGTH]) -> Option<Self> {
        let [l0, l1, p0, p1, k0, k1, k2, k3, u0, u1, u2, u3] = *bytes;
        Some(Self {
            length: u16::from_le_bytes([l0, l1]),
            project: u32::from_le_bytes([k0, k1, k2, k3]),
            updated: u32::from_le_bytes([u0, u1, u2, u3]),
            properties: NonZeroU16::new(u16::from_le_bytes([p0, p1]))?,
        })
    }

    /// Returns whether this module could have written the properties.
    pub(super) fn is_sound(&self) -> bool {
        let properties = self.properties.get();
        properties & 1 == 1
            && properties >> (REFLECTED + 1) == 0
            && usize::from(properties >> TYPE & 3) < NoteType::ALL.len()
            && usize::from(properties >> KIND & 7) < Kind::ALL.len()
            && usize::from(properties >> STATE & 3) < State::ALL.len()
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> u16 {
    let place = all.iter().position(|other| other == one);
    // The lists have at most seven values, and every value is in its list.
    u16::try_from(place.unwrap_or_default()).unwrap_or_default()
}

/// A block of notes by position, `None` for an unused number.
pub type Block = Vec<Option<Document>>;

pub(super) fn decode_block(bytes: &[u8]) -> Option<Block> {
    let (documents, rest) = bytes.as_chunks::<DOCUMENT_LENGTH>();
    if !rest.is_empty() || documents.len() > BLOCK_LENGTH {
        return None;
    }
    let block: Block = documents.iter().map(Document::decode).collect();
    block
        .iter()
        .flatten()
        .all(Document::is_sound)
        .then_some(block)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::id::NoteId;
    use chrono::DateTime;

    use super::*;

    #[test]
    fn every_property_is_read_as_it_was_written() {
        let mut note = Note::new(
            NoteId::made_of("1"),
            NoteType::Semantic,
            DateTime::UNIX_EPOCH,
        );
        for &note_type in NoteType::ALL {
            for &kind in Kind::ALL {
                for &state in State::ALL {
                    for (scope, flag) in [(Scope::Portable, true), (Scope::MachineLocal, false)] {
                        note.note_type = note_type;
                        note.kind = Some(kind);
                        note.state = state;
                        note.scope = scope;
                        note.tags = if flag {
                            vec!["reflected".to_owned()]
                        } else {
                            Vec::new()
                        };
                        let mut document = Document::from_note(&note, u32::MAX, 70_000);
                        document.supersede(!flag);
                        let read = Document::decode(&document.encode()).unwrap();
                        assert_eq!(read, document);
                        assert!(read.is_sound());
                        assert_eq!((read.length, read.project), (u16::MAX, u32::MAX));
                        assert_eq!((read.note_type(), read.kind()), (note_type, note.kind()));
                        assert_eq!((read.state(), read.scope()), (state, scope));
                        assert_eq!((read.is_reflected(), read.is_superseded()), (flag, !flag));
                    }
                }
            }
        }
        assert_eq!(Document::decode(&[0; DOCUMENT_LENGTH]), None);
        for properties in [0x10_u16, 0x0807, 0xffff, 0b11_1001, 0b111] {
            let mut bytes = [0; DOCUMENT_LENGTH];
            bytes[2..4].copy_from_slice(&properties.to_le_bytes());
            assert_eq!(decode_block(&bytes), None, "{properties:x}");
        }
    }
}
