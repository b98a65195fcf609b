//! The setup of a machine (`init`): its current state, the planned changes, and the saved settings.

use std::{path::PathBuf, time::Duration};

use anamnesis_store::{
    fs::home::Home,
    settings::{self, config::Config},
};
use anamnesis_sync::remote::Remote;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Error,
    context::Context,
    environment::Environment,
    python_version::{self, PythonEntries},
    remote,
    settings::REMOTES,
    terminal_command::{self, LinkTarget},
};

/// Timeout for the store's locks.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The addition to an error when no change was made.
pub const NOTHING_CHANGED: &str = "Nothing was changed, and your notes are safe";

/// The person's choices.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// The repository: git@HOST:PATH, ssh://…, https://… or a folder
    #[arg(long, value_name = "URL", conflicts_with = "local_only")]
    pub remote: Option<String>,
    /// Disconnect from the remote; notes stay on this machine
    #[arg(long)]
    pub local_only: bool,
    /// The name of this machine in notes [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub machine_id: Option<String>,
    /// The store [default: ~/.anamnesis]
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

/// The state before any change, and the planned changes.
pub struct Plan {
    /// The store, which may not exist yet.
    pub context: Context,
    /// The store that hooks use, if it is a different one.
    pub other_store: Option<PathBuf>,
    /// The name of this machine.
    pub machine: Machine,
    /// The planned change of the remote.
    pub remote: Wanted,
    /// The entries of the Python version in Claude Code's files.
    pub python: PythonEntries,
    /// The store that the Python version's entries name, if hooks use another one.
    pub python_store: Option<PathBuf>,
}

/// The name of this machine in notes.
pub struct Machine {
    /// The name.
    pub name: String,
    /// Whether the name has to be saved.
    pub is_new: bool,
}

/// The planned change of the remote.
pub enum Wanted {
    /// No remote is configured, and the person named none.
    None,
    /// The configured remote stays.
    Set(Remote),
    /// This remote replaces the configured one.
    New(Remote),
    /// The remote is removed. Holds its text for display.
    Left(String),
}

/// How a machine is set up, for scripts.
#[derive(Serialize)]
pub struct MachineState {
    store: String,
    machine_id: String,
    remote: Option<String>,
    python_version: bool,
    command: Option<String>,
    on_path: bool,
}

impl Plan {
    /// Returns how the machine is set up.
    pub fn state(&self) -> MachineState {
        let context = &self.context;
        let is_ours = || matches!(terminal_command::place(context), LinkTarget::Ours);
        let link = terminal_command::link(&context.environment).filter(|_| is_ours());
        let store = context.home.as_named(context.home.root());
        MachineState {
            store: store.display().to_string(),
            machine_id: self.machine.name.clone(),
            remote: remote::address(context).map(remote::shown),
            python_version: self.python.is_some(),
            command: link.map(|link| link.display().to_string()),
            on_path: terminal_command::is_found(context),
        }
    }

    /// Collects the state without changing anything.
    ///
    /// # Errors
    /// Returns an error if an option is invalid, or if the settings cannot be read.
    pub fn new(options: &Options, mut environment: Environment) -> Result<Self, Error> {
        let mut other_store = None;
        if let Some(folder) = &options.home {
            let folder = std::path::absolute(folder)
                .map_err(|error| Error::usage(format!("--home: {error}")))?;
            other_store = environment.store.replace(folder);
        }
        let python = python_version::find(&environment)?;
        let of_hooks = other_store.as_ref().or(environment.store.as_ref());
        let python_store =
            of_hooks.and_then(|store| python.other_store(store, environment.user_home.as_deref()));
        let context = Context::new(environment, TIMEOUT)?;
        // Two paths may name the same folder.
        let other_store =
            other_store.filter(|store| Home::new(store).root() != context.home.root());
        // A file that cannot be read cannot be updated, either.
        Config::keys(&context.home).map_err(|error| Error::from(error).also(NOTHING_CHANGED))?;
        let machine = match &options.machine_id {
            Some(name) if settings::is_machine_name(name) => Machine {
                name: name.clone(),
                is_new: context.config.machine_id.as_ref() != Some(name),
            },
            Some(name) => {
                return Err(Error::usage(format!(
                    "\"{}\" cannot be the name of a machine",
                    anamnesis_text::clean::one_line(name)
                ))
                .hint("1 to 64 letters, digits, `.`, `_` or `-`"));
            }
            None => {
                let name = context.machine_id();
                let is_unset = context.config.machine_id.is_none();
                Machine {
                    is_new: is_unset && settings::is_machine_name(&name),
                    name,
                }
            }
        };
        let parse = |address: &str| {
            remote::parse(address, &context.home, &context.config).map_err(|error| {
                Error::usage(error.to_string())
                    .also(NOTHING_CHANGED)
                    .hint(REMOTES)
            })
        };
        let remote = match (&options.remote, &context.config.remote) {
            (Some(address), set) if set.as_deref() != Some(address.trim()) => {
                Wanted::New(parse(address.trim())?)
            }
            (None, Some(set)) if options.local_only => Wanted::Left(remote::shown(set)),
            _ if options.local_only => Wanted::None,
            _ => match remote::address(&context) {
                Some(address) => Wanted::Set(parse(address)?),
                None => Wanted::None,
            },
        };
        Ok(Self {
            context,
            other_store,
            machine,
            remote,
            python,
            python_store,
        })
    }
}

/// Saves the machine name and the remote; a null remote removes the setting.
///
/// # Errors
/// Returns an error if the settings cannot be written.
pub fn save(
    context: &Context,
    machine: Option<String>,
    remote: Option<Value>,
) -> Result<(), Error> {
    Config::update(&context.home, |keys| {
        if let Some(name) = machine {
            keys.insert("machine_id".to_owned(), name.into());
        }
        match remote {
            Some(Value::Null) => drop(keys.shift_remove("remote")),
            Some(remote) => drop(keys.insert("remote".to_owned(), remote)),
            None => {}
        }
    })
    .map_err(|error| Error::from(error).also("Your notes are safe"))
}
