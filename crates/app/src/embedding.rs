//! The optional embedding model: adding and removing its file, vectors of notes and of queries.
//!
//! The file is in `embedding/` of the store, named after its SHA-256. It is machine-local and is
//! never fetched. The index says which model made its vectors, so that vectors of two models are
//! never compared.

use std::{
    cell::Cell,
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use anamnesis_embedding::{FILE_NAME, Model, TextRole};
use anamnesis_recall::rank::Query;
use anamnesis_store::{
    fs::{
        file::{self, private_options, sync_file, sync_folder, write_atomic},
        home::{Home, ensure_folder},
    },
    index::{self, EmbeddingCounts, Index},
    settings::config::Semantic,
};
use anamnesis_text::sanitize::{head, tail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ulid::Ulid;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    environment::INSTALLED_PLUGINS,
};

/// The plugin of the same marketplace that is only a model, as Claude Code lists it.
const PLUGIN: &str = "anamnesis-semantic@";

/// The file in `embedding/` that says which file of the plugin was taken over.
const TAKEN: &str = "plugin.json";

/// How many vectors are written at once. The index is locked only for that.
const BATCH: usize = 16;

/// The ending of a model's file.
const ENDING: &str = ".bin";

/// The number of characters of a SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;

/// A model that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// The SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// The size of its file in bytes.
    pub bytes: u64,
    path: PathBuf,
}

/// The model and its vectors, as `config model` shows them.
#[derive(Debug, Serialize)]
pub struct ModelReport {
    /// The SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// The size of its file in bytes.
    pub bytes: u64,
    /// How many notes have a vector.
    #[serde(flatten)]
    pub counts: EmbeddingCounts,
    /// Why it cannot be used, if it cannot.
    pub fault: Option<String>,
}

impl InstalledModel {
    /// Finds the model of a store.
    pub fn find(home: &Home) -> Option<Self> {
        let entries = fs::read_dir(home.embedding()).ok()?;
        let models = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let sha256 = name.strip_suffix(ENDING)?;
            let is_hash =
                sha256.len() == HASH_LENGTH && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            let metadata = entry.metadata().ok().filter(|it| is_hash && it.is_file())?;
            Some(Self {
                sha256: sha256.to_owned(),
                bytes: metadata.len(),
                path: entry.path(),
            })
        });
        models.min_by(|one, other| one.sha256.cmp(&other.sha256))
    }

    fn load(&self) -> Result<Model, anamnesis_embedding::Error> {
        Model::load(&self.path)
    }

    /// Compares the file with its hash, loads the model and makes a vector, to report a damaged file.
    pub fn check(&self) -> Result<(), anamnesis_embedding::Error> {
        if file::sha256(&self.path)? != self.sha256 {
            let changed = "the file has changed since it was added".to_owned();
            return Err(anamnesis_embedding::Error::Invalid(changed));
        }
        check(&self.path)
    }
}

/// Copies a model into the store, after a check that it can be used. It replaces another one. The
/// deferred process makes the vectors.
pub fn add(context: &Context, file: &Path) -> Result<InstalledModel, Error> {
    context.check_person("add or remove a model")?;
    add_copy(context, file)
}

fn add_copy(context: &Context, file: &Path) -> Result<InstalledModel, Error> {
    let unusable = |error: anamnesis_embedding::Error| {
        Error::failed(format!("{}: {error}", context.shown(file)))
            .because(error)
            .hint("docs/reference/models.md says which file to use")
    };
    check(file).map_err(unusable)?;
    let folder = context.home.embedding();
    ensure_folder(&folder).map_err(Error::caused_by)?;
    let copy = folder.join(format!("{}.new", Ulid::generate()));
    let shown = context.shown(file);
    let copied = || -> io::Result<String> {
        let mut new = private_options().create_new(true).open(&copy)?;
        io::copy(&mut File::open(file)?, &mut new)?;
        sync_file(&copy)?;
        file::sha256(&copy)
    };
    let copied = copied().map_err(Error::prefixed(format_args!("cannot copy {shown}")));
    // The copy counts: the file may have changed meanwhile.
    let copied = copied.and_then(|sha256| check(&copy).map_err(unusable).map(|()| sha256));
    let sha256 = copied.inspect_err(|_| {
        let _ = fs::remove_file(&copy);
    })?;
    let path = folder.join(format!("{sha256}{ENDING}"));
    let keep = || -> io::Result<()> {
        fs::rename(&copy, &path)?;
        sync_folder(&folder);
        remove_all_but(&folder, Some(&path))
    };
    keep().map_err(Error::caused_by)?;
    InstalledModel::find(&context.home)
        .ok_or_else(|| Error::failed(format!("{} is gone", context.shown(&path))))
}

/// Removes the model and the vectors. Returns whether there was one.
pub fn remove(context: &Context) -> Result<bool, Error> {
    context.check_person("add or remove a model")?;
    remove_model(context)
}

fn remove_model(context: &Context) -> Result<bool, Error> {
    let folder = context.home.embedding();
    let found = InstalledModel::find(&context.home).is_some();
    if folder.is_dir() {
        remove_all_but(&folder, None).map_err(Error::caused_by)?;
    }
    match Index::open_if_usable(&context.home, TIMEOUT) {
        Ok(mut index) => index.set_embedding_model(None)?,
        // A rebuilt index has no vectors.
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(found)
}

/// A file of the plugin that was taken over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TakenFile {
    path: PathBuf,
    bytes: u64,
    /// The model in the store; `None` if the file is not usable.
    sha256: Option<String>,
}

/// Takes over the model of the plugin `anamnesis-semantic`, which a person installs, once per file.
/// After the plugin is uninstalled, its model is removed. A model that a person removes or adds stays
/// as they left it.
pub fn follow_plugin(context: &Context) -> Result<(), Error> {
    let marker = context.home.embedding().join(TAKEN);
    let taken = fs::read(&marker).ok();
    let taken = taken.and_then(|bytes| serde_json::from_slice::<TakenFile>(&bytes).ok());
    let (path, bytes) = match plugin_file(context) {
        PluginFile::Installed(path, bytes) => (path, bytes),
        PluginFile::Unknown => return Ok(()),
        PluginFile::Uninstalled => {
            let Some(taken) = taken else { return Ok(()) };
            fs::remove_file(&marker).map_err(Error::caused_by)?;
            let current = InstalledModel::find(&context.home).map(|model| model.sha256);
            if current.is_some() && current == taken.sha256 {
                remove_model(context)?;
            }
            return Ok(());
        }
    };
    if taken.is_some_and(|taken| taken.path == path && taken.bytes == bytes) {
        return Ok(());
    }
    let added = add_copy(context, &path);
    let taken = TakenFile {
        path,
        bytes,
        sha256: added.as_ref().ok().map(|model| model.sha256.clone()),
    };
    ensure_folder(&context.home.embedding()).map_err(Error::caused_by)?;
    let json = serde_json::to_vec(&taken).map_err(Error::caused_by)?;
    write_atomic(&marker, &json).map_err(Error::caused_by)?;
    added.map(drop)
}

/// The state of the plugin in Claude Code's list of plugins.
enum PluginFile {
    /// The path of its model file, and the size in bytes.
    Installed(PathBuf, u64),
    Uninstalled,
    /// The list cannot be read now, or the plugin has no file: both happen during an update.
    Unknown,
}

/// Returns what is known about the plugin's model file. An installation by a project does not count: a
/// repository chooses no model.
fn plugin_file(context: &Context) -> PluginFile {
    let Some(plugins) = installed_plugins(context) else {
        return PluginFile::Unknown;
    };
    let mut installations = plugins
        .iter()
        .filter(|(name, _)| name.starts_with(PLUGIN))
        .filter_map(|(_, installations)| installations.as_array())
        .flatten();
    let Some(own) = installations.find(|it| it["scope"] == "user") else {
        return PluginFile::Uninstalled;
    };
    let Some(folder) = own["installPath"].as_str() else {
        return PluginFile::Unknown;
    };
    let path = Path::new(folder).join(FILE_NAME);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => PluginFile::Installed(path, metadata.len()),
        _ => PluginFile::Unknown,
    }
}

/// Returns Claude Code's list of plugins, if it can be read.
fn installed_plugins(context: &Context) -> Option<Map<String, Value>> {
    let folder = context.environment.own_claude_folder()?;
    let list = fs::read(folder.join(INSTALLED_PLUGINS)).ok()?;
    let list: Value = serde_json::from_slice(&list).ok()?;
    list.get("plugins")?.as_object().cloned()
}

fn check(path: &Path) -> Result<(), anamnesis_embedding::Error> {
    let mut model = Model::load(path)?;
    model.embed("anamnesis", TextRole::Query).map(drop)
}

/// Removes the models of the folder, and copies that were not finished.
fn remove_all_but(folder: &Path, kept: Option<&Path>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if Some(path.as_path()) != kept && path.file_name() != Some(OsStr::new(TAKEN)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Makes vectors of notes for a time, newest notes first. Returns whether notes are left.
pub fn make_vectors(context: &Context, time: Duration) -> Result<bool, Error> {
    let begun = Instant::now();
    let model = InstalledModel::find(&context.home);
    let name = model.as_ref().map(|model| model.sha256.as_str());
    let index = match Index::open(&context.home) {
        // Windows cannot replace an index at once, so another process may be rebuilding it.
        Err(index::Error::Missing) => return Ok(false),
        opened => opened?,
    };
    if index.embedding_model()?.as_deref() != name {
        drop(index);
        Index::open_if_usable(&context.home, TIMEOUT)?.set_embedding_model(name)?;
    }
    let Some(model) = model else {
        return Ok(false);
    };
    let mut loaded = None;
    loop {
        let pending = Index::open(&context.home)?.pending_embeddings(BATCH)?;
        if pending.is_empty() {
            return Ok(false);
        }
        let mut vectors = Vec::with_capacity(pending.len());
        for note in pending {
            if begun.elapsed() >= time {
                break;
            }
            let loaded = match &mut loaded {
                Some(loaded) => loaded,
                none => none.insert(model.load().map_err(Error::caused_by)?),
            };
            let made = loaded.embed_passages(&note.texts.passages());
            vectors.push((note, made.map_err(Error::caused_by)?));
        }
        let mut index = Index::open_if_usable(&context.home, TIMEOUT)?;
        // Another model may have been added meanwhile.
        if index.embedding_model()?.as_deref() != Some(model.sha256.as_str()) {
            return Ok(true);
        }
        index.add_embeddings(&vectors)?;
        if begun.elapsed() >= time {
            return Ok(true);
        }
    }
}

/// How many bytes of a prompt become a vector: a hook has no time for more.
const MAX_PROMPT: usize = 160;

/// How long a hook waits for the vector of a prompt: a machine that also builds or tests needs more
/// than the 60 ms of an idle one.
const PROMPT_TIMEOUT: Duration = Duration::from_millis(600);

/// Encodes a prompt in a thread of its own, while words are compared.
pub struct PromptEncoder {
    sha256: String,
    vector: Receiver<Result<Vec<f32>, anamnesis_embedding::Error>>,
    is_late: Cell<bool>,
}

impl PromptEncoder {
    /// Begins to encode a prompt; `None` if the settings or the lack of a model say no.
    pub fn start(context: &Context, query: &Query) -> Option<Self> {
        if context.config.recall.semantic != Semantic::Prompt {
            return None;
        }
        let model = InstalledModel::find(&context.home)?;
        let sha256 = model.sha256.clone();
        let prompt = ends(&query.text(), MAX_PROMPT);
        let (sender, vector) = mpsc::sync_channel(1);
        let encode = move || model.load()?.embed(&prompt, TextRole::Query);
        // Without a thread, words alone count.
        let thread = thread::Builder::new().spawn(move || sender.send(encode()));
        thread.is_ok().then_some(Self {
            sha256,
            vector,
            is_late: Cell::new(false),
        })
    }

    /// Waits for the vector; `None` if it takes too long, or the index has no vectors of this model. A
    /// model that cannot be used is reported in the log.
    pub fn vector(&self, context: &Context, index: &Index) -> Option<Vec<f32>> {
        if !has_vectors_of(index, &self.sha256) {
            return None;
        }
        let encoded = self.vector.recv_timeout(PROMPT_TIMEOUT);
        self.is_late.set(encoded.is_err());
        encoded
            .ok()?
            .inspect_err(|error| context.log(&error.to_string()))
            .ok()
    }

    /// Returns whether the vector came too late, so that words alone counted.
    pub fn is_late(&self) -> bool {
        self.is_late.get()
    }
}

/// Returns whether this model made the vectors of the index.
fn has_vectors_of(index: &Index, sha256: &str) -> bool {
    let made_by = index.embedding_model().ok().flatten();
    made_by.as_deref() == Some(sha256)
}

/// Returns the beginning and the end of a longer text.
fn ends(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{} {}", head(text, limit / 2), tail(text, limit / 2))
}

/// Makes vectors of queries. The model is loaded with the first one.
#[derive(Debug, Default)]
pub struct QueryEncoder(Mutex<Option<(String, Model)>>);

impl QueryEncoder {
    /// Returns the vector of a query; `None` without a model, if the settings say so, or while the
    /// index has none of its vectors. A model that cannot be used is reported in the log, and words
    /// alone count.
    pub fn vector(&self, context: &Context, index: &Index, query: &str) -> Option<Vec<f32>> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = context.config.recall.semantic != Semantic::Off;
        let model = is_on.then(|| InstalledModel::find(&context.home)).flatten();
        let Some(model) = model.filter(|model| has_vectors_of(index, &model.sha256)) else {
            // A removed model does not stay in memory.
            *loaded = None;
            return None;
        };
        if loaded
            .as_ref()
            .is_none_or(|(name, _)| *name != model.sha256)
        {
            *loaded = (model.load())
                .inspect_err(|error| context.log(&error.to_string()))
                .ok()
                .map(|loaded| (model.sha256, loaded));
        }
        let (_, model) = loaded.as_mut()?;
        let vector = model.embed(query, TextRole::Query);
        vector
            .inspect_err(|error| context.log(&error.to_string()))
            .ok()
    }
}
