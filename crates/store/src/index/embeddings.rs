//! The vectors of notes, made by an embedding model in the background: one byte per component.
//!
//! A long note has several, one after another in a row. A changed note loses its vectors, and another
//! model removes all of them.

use anamnesis_note::id::NoteId;
use rusqlite::params;

use super::{
    Error, Index, Tables, Texts, bound,
    entry::{Parsed, stamp_of},
    postings::text_of,
};
use crate::{fs::file::Stamp, sqlite::Queries};

const SCHEMA: &str = "
CREATE TABLE embedding (number INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert: |_, _, _| Ok(()),
    remove: &["DELETE FROM embedding WHERE number = ?"],
};

/// The key in `meta` of the model that made the vectors.
const MODEL: &str = "embedding_model";

/// Notes in use without a vector, newest first.
const PENDING: &str = "SELECT id, size, modified, inode, number, title FROM note
  WHERE state <> 'forgotten' AND number NOT IN (SELECT number FROM embedding)
  ORDER BY updated_at DESC LIMIT ?";

/// A note without a vector.
#[derive(Debug, Clone)]
pub struct PendingEmbedding {
    id: NoteId,
    stamp: Stamp,
    /// Its texts.
    pub texts: Texts,
}

/// How many notes have a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct EmbeddingCounts {
    /// Notes with a vector.
    #[serde(rename = "vectors")]
    pub done: usize,
    /// All notes that get one.
    #[serde(rename = "notes")]
    pub total: usize,
}

impl Index {
    /// Returns the model that made the vectors, if any.
    pub fn embedding_model(&self) -> Result<Option<String>, Error> {
        let name = self.meta(MODEL)?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// Sets the model that makes the vectors. Those of another model are removed.
    pub fn set_embedding_model(&mut self, name: Option<&str>) -> Result<(), Error> {
        if self.embedding_model()?.as_deref() == name {
            return Ok(());
        }
        let transaction = self.connection.unchecked_transaction()?;
        transaction.run("DELETE FROM embedding", [])?;
        transaction.set_meta(MODEL, name.unwrap_or_default())?;
        Ok(transaction.commit()?)
    }

    /// Returns the newest notes without a vector.
    pub fn pending_embeddings(&self, limit: usize) -> Result<Vec<PendingEmbedding>, Error> {
        self.rows(PENDING, [bound(limit)], |row| {
            let texts = text_of(&self.connection, row.get("number")?)?.unwrap_or_default();
            Ok(PendingEmbedding {
                id: row.get::<_, Parsed<_>>("id")?.0,
                stamp: stamp_of(row, 1)?,
                texts: Texts {
                    title: row.get("title")?,
                    ..texts
                },
            })
        })
    }

    /// Adds vectors. A note that has changed meanwhile gets none.
    pub fn add_embeddings(&mut self, vectors: &[(PendingEmbedding, Vec<u8>)]) -> Result<(), Error> {
        let transaction = self.connection.unchecked_transaction()?;
        for (note, vector) in vectors {
            let Stamp {
                size,
                modified,
                inode,
            } = note.stamp;
            transaction.run(
                "INSERT OR REPLACE INTO embedding SELECT number, ? FROM note
                     WHERE id = ? AND size = ? AND modified = ? AND inode = ?",
                params![vector, note.id.to_string(), size, modified, inode],
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// Passes each note's number and vector.
    pub fn each_embedding(&self, mut take: impl FnMut(u32, &[u8])) -> Result<(), Error> {
        self.each("SELECT number, vector FROM embedding", [], |row| {
            take(row.get(0)?, row.get_ref(1)?.as_blob()?);
            Ok(())
        })
    }

    /// Counts the notes with a vector.
    pub fn count_embeddings(&self) -> Result<EmbeddingCounts, Error> {
        Ok(EmbeddingCounts {
            done: self.value("SELECT count(*) FROM embedding", [])?,
            total: self.value("SELECT count(*) FROM note WHERE state <> 'forgotten'", [])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::Fixture;

    #[test]
    fn a_changed_note_and_another_model_lose_their_vectors() {
        let fixture = Fixture::new();
        let one = fixture.add("one", |note| note.body = "text".to_owned());
        fixture.add("two", |_| {});
        let mut index = fixture.refreshed();
        index.set_embedding_model(Some("a")).unwrap();
        let pending = index.pending_embeddings(9).unwrap();
        let texts = pending.iter().find(|note| note.id == one.path.id).unwrap();
        assert_eq!(
            (texts.texts.title.as_str(), texts.texts.body.as_str()),
            ("one", "text")
        );
        let vectors: Vec<_> = pending.into_iter().map(|note| (note, vec![1, 2])).collect();
        index.add_embeddings(&vectors).unwrap();
        index.set_embedding_model(Some("a")).unwrap();
        let counts = |done, total| EmbeddingCounts { done, total };
        assert_eq!(index.count_embeddings().unwrap(), counts(2, 2));
        let mut seen = 0;
        index
            .each_embedding(|_, vector| seen += usize::from(vector == [1, 2]))
            .unwrap();
        assert_eq!(seen, 2);
        drop(index);

        // A vector that was made of the old text is not added to the new one.
        let mut note = one.note();
        note.body = "another text".to_owned();
        std::fs::write(one.path.absolute(&fixture.home), note.render()).unwrap();
        let mut index = fixture.refreshed();
        assert_eq!(index.count_embeddings().unwrap(), counts(1, 2));
        index.add_embeddings(&vectors).unwrap();
        assert_eq!(index.count_embeddings().unwrap(), counts(1, 2));
        assert_eq!(index.pending_embeddings(9).unwrap().len(), 1);

        index.set_embedding_model(Some("b")).unwrap();
        assert_eq!(index.count_embeddings().unwrap(), counts(0, 2));
        index.set_embedding_model(None).unwrap();
        assert_eq!(index.embedding_model().unwrap(), None);
    }
}
