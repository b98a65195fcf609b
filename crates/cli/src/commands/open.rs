//! `open`: shows the memory in a browser.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anamnesis_app::{Error, context::Context, spawn};
use anamnesis_store::fs::file;
use anamnesis_web::{Options, Server};
use serde_json::Value;

use crate::ui::{Outcome, Ui};

/// Show the memory in your browser
///
/// Starts a server on 127.0.0.1 in this process. It ends 20 seconds after the last page is closed,
/// on Ctrl-C, or after --for. The address works once.
///
/// Over ssh, forward the port: `ssh -L 8080:127.0.0.1:8080 HOST`, then there
/// `anamnesis open --port 8080 --print`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A page by its name in the address, such as `live`, or a note's id
    #[arg(value_name = "PAGE|ID", default_value = "notes")]
    page: String,
    /// The port [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print only the address, and open no browser
    #[arg(long)]
    print: bool,
    /// Open no browser
    #[arg(long)]
    no_browser: bool,
    /// Refuse every change
    #[arg(long)]
    read_only: bool,
    /// End after this time, such as 30min or 2h
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    keep_for: Option<Duration>,
    /// Print the address, and keep running in the background
    #[arg(long, conflicts_with = "no_browser")]
    background: bool,
    /// Print only the address, as JSON, and open no browser
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: Context, ui: &Ui) -> Outcome {
    let page = match anamnesis_web::names().find(|name| *name == args.page) {
        Some(name) => name.to_owned(),
        None => Context::resolve(&context.index()?, &args.page)
            .map_err(|error| {
                let pages: Vec<_> = anamnesis_web::names().collect();
                error.hint(format!("a note's id, or a page: {}", pages.join(", ")))
            })?
            .id()
            .to_string(),
    };
    if args.background {
        return in_background(args, &page, &context, ui);
    }
    let options = Options {
        port: args.port,
        is_read_only: args.read_only,
        keep_for: args.keep_for,
        ..Options::default()
    };
    let page_file = context.home.derived().join("open.html");
    let server = Server::bind(context, options).map_err(|error| {
        Error::prefixed("cannot listen on 127.0.0.1")(error)
            .hint("--port with another number, or none for any free port")
    })?;
    let address = server.address(&page).unwrap_or_default();
    say(&address, args.json, ui);
    if !args.print && !args.json {
        ui.note("The address works once. The viewer ends when its last page is closed.\n");
        // Another user of this machine can read a command line, but not this file.
        let page =
            format!("<!doctype html><meta http-equiv=refresh content=\"0;url={address}\">\n");
        let is_opened =
            || file::write_atomic(&page_file, page.as_bytes()).is_ok() && open_browser(&page_file);
        if !args.no_browser && !is_opened() {
            ui.note("no browser was found: open the address yourself\n");
        }
    }
    let run = server.run();
    let _ = fs::remove_file(&page_file);
    run.map_err(Error::caused_by)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the viewer as a process of its own, and prints its address.
fn in_background(args: &Args, page: &str, context: &Context, ui: &Ui) -> Outcome {
    let port = args.port.to_string();
    let seconds = args.keep_for.map(|time| format!("{}s", time.as_secs()));
    let mut words = vec!["open", page, "--print", "--port", &port];
    if args.read_only {
        words.push("--read-only");
    }
    if let Some(seconds) = &seconds {
        words.extend(["--for", seconds]);
    }
    let address = spawn::start_viewer(&context.environment, &words)
        .map_err(Error::prefixed("cannot start the viewer"))?;
    say(address.trim_end(), args.json, ui);
    Ok(ExitCode::SUCCESS)
}

/// Prints the address, for scripts as JSON.
fn say(address: &str, json: bool, ui: &Ui) {
    if json {
        ui.raw(&format!("{:#}\n", Value::from_iter([("address", address)])));
    } else {
        // For an agent, too: it shows the address to the person, and the token is good once.
        ui.raw(&format!("{address}\n"));
    }
}

/// Opens a file in the system's browser. Returns whether a program for it was found.
fn open_browser(page: &Path) -> bool {
    const OPENERS: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else if cfg!(windows) {
        &[("rundll32", &["url.dll,FileProtocolHandler"])]
    } else {
        &[("xdg-open", &[]), ("wslview", &[])]
    };
    OPENERS.iter().any(|(program, words)| {
        let mut command = Command::new(program);
        command.args(*words).arg(page);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}

/// Parses a time such as `90s`, `30min` or `2h`.
fn duration(text: &str) -> Result<Duration, &'static str> {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = match unit.trim() {
        "s" => Some(1),
        "min" | "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let seconds = unit.and_then(|unit| number.parse::<u64>().ok()?.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=7 * 24 * 3600).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or("expected a time up to 7 days, such as 90s, 30min or 2h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("30min"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for text in ["", "2", "h", "-1h", "0s", "1d", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
