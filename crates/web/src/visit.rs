//! Defines the request that a page's function gets.

use std::sync::Arc;

use anamnesis_app::{Error, context::Context, embedding::QueryEncoder};
use anamnesis_note::id::NoteId;
use anamnesis_store::index::Index;
use anamnesis_text::clean::clean;
use ulid::Ulid;

use crate::{answer::PageResponse, kept::Kept, layout};

/// How many parameters of an address or a form are read.
const MAX_PARAMS: usize = 2_000;

/// The parameters of an address or a form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(pub(crate) Vec<(String, String)>);

impl Params {
    /// Parses the parameters, without terminal sequences and invisible characters.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(bytes).take(MAX_PARAMS);
        let pairs = pairs.map(|(name, value)| (name.into(), clean(&value).into_owned()));
        Self(pairs.collect())
    }

    /// Returns the first value of a name, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let (_, value) = pairs.find(|(other, value)| other == name && !value.is_empty())?;
        Some(value)
    }

    /// Returns the parameters as the query of an address, without those of a toast.
    pub(crate) fn query(&self) -> String {
        let kept = self.0.iter();
        let kept = kept.filter(|(name, value)| !value.is_empty() && !layout::is_toast(name));
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .finish()
    }

    /// Returns the parameters as the query of an address, with one of them replaced.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let mut pairs = self.0.clone();
        pairs.retain(|(other, _)| other != name);
        pairs.push((name.to_owned(), value.to_owned()));
        Self(pairs).query()
    }
}

/// One request.
pub(crate) struct Visit {
    /// The store, with the settings and the time of now.
    pub(crate) context: Context,
    /// Whether writes are refused, so forms are not shown.
    pub(crate) is_read_only: bool,
    /// The rows that take long to find.
    pub(crate) kept: Arc<Kept>,
    /// The embedding model, once a search has loaded it.
    pub(crate) encoder: Arc<QueryEncoder>,
    /// The path and the name of each page in the navigation.
    pub(crate) navigation: Vec<(&'static str, &'static str)>,
    /// Returns whether a path is one of the viewer's.
    pub(crate) is_known: fn(&str) -> bool,
    /// The path of the address, which is that of a route.
    pub(crate) path: String,
    /// The part of the path that a route calls `{id}`: letters, digits and `-`.
    pub(crate) id: String,
    /// The parameters of the address.
    pub(crate) query: Params,
    /// The fields of the form.
    pub(crate) form: Params,
}

impl Visit {
    /// Opens the index after a look at changed notes. The write lock is released, so that a page
    /// never keeps a hook waiting.
    pub(crate) fn index(&self) -> Result<Index, Error> {
        let index = self.context.index_as_listed()?;
        match Index::open(&self.context.home) {
            Ok(index) => Ok(index),
            // In a store that can only be read, the index is in memory.
            Err(_) => Ok(index),
        }
    }

    /// Returns whether this page belongs to one of the navigation, by its path.
    pub(crate) fn is_below(&self, path: &str) -> bool {
        let above = match self.path.split('/').nth(1) {
            Some("session") => "sessions",
            Some("change") => "history",
            Some(name) => name,
            None => return false,
        };
        path.strip_prefix('/') == Some(above)
    }

    /// Returns the note that the address names by its full id.
    pub(crate) fn note_id(&self) -> Result<NoteId, Error> {
        self.id.parse().map_err(|_| layout::missing("note"))
    }

    /// Returns the change that the form names by its full id.
    pub(crate) fn change(&self) -> Option<Ulid> {
        Ulid::from_string(self.form.get("change")?).ok()
    }

    /// Returns whether the person has confirmed the form on a second page.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.form.get(layout::SURE) == Some("yes")
    }

    /// Returns the page to go back to after a write: the one that the form names, or `otherwise`.
    pub(crate) fn back(&self, otherwise: &str) -> String {
        let named = self.form.get("back").filter(|path| (self.is_known)(path));
        named.unwrap_or(otherwise).to_owned()
    }
}

/// The result of a page's function.
pub(crate) type Answered = Result<PageResponse, Error>;
