//! Builds the program for every platform that this machine can build for, and runs it there.
//!
//! rustup has no target here but the machine's own, so Debian's compiler builds the standard library
//! from its sources. zig links for Linux with musl and checks for macOS; mingw links for Windows.
//! qemu and Wine run what this processor and kernel cannot. What a target cannot do is skipped with
//! its reason. See `docs/decisions/0064-platforms.md`.

mod hand;
mod setup;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, at, run as run_command, say, target_folder};

use self::hand::Guest;
use self::setup::{Tools, is_installed};
use self::suite::Results;

/// Build the program for other platforms, and run it there
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Targets [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Also run the tests of the workspace there, which builds everything again
    #[arg(long)]
    tests: bool,
    /// Run the tests of these packages only
    #[arg(long, value_name = "NAME", requires = "tests")]
    package: Vec<String>,
    /// Also build in a second folder, and compare the bytes
    #[arg(long)]
    reproduce: bool,
}

/// How a target is built, and what runs its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Linked by zig, and run by the kernel, which starts qemu for another processor: the name that
    /// Debian's package gives this emulator.
    Musl { qemu: Option<&'static str> },
    /// Linked by mingw, and run by Wine.
    Windows,
    /// Checked only, by the compiler and clippy.
    Apple,
}

/// A target that can be built here.
pub(crate) struct Platform {
    pub(crate) target: &'static str,
    /// The target of a release that it stands for.
    pub(crate) released_as: &'static str,
    kind: Kind,
}

/// All targets, the cheapest first.
pub(crate) const PLATFORMS: [Platform; 5] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        released_as: "x86_64-unknown-linux-musl",
        kind: Kind::Musl { qemu: None },
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        released_as: "aarch64-unknown-linux-musl",
        kind: Kind::Musl {
            qemu: Some("qemu-aarch64"),
        },
    },
    // The release is built by Microsoft's linker, which cannot be had here.
    Platform {
        target: "x86_64-pc-windows-gnu",
        released_as: "x86_64-pc-windows-msvc",
        kind: Kind::Windows,
    },
    Platform {
        target: "aarch64-apple-darwin",
        released_as: "aarch64-apple-darwin",
        kind: Kind::Apple,
    },
    Platform {
        target: "x86_64-apple-darwin",
        released_as: "x86_64-apple-darwin",
        kind: Kind::Apple,
    },
];

/// A release aborts on a panic, so its unwind tables are never read. Tests unwind. Windows' targets
/// refuse the option. `.github/build-setup.yml` sets it for the released programs.
const NO_UNWIND_TABLES: &str = "-C force-unwind-tables=no";

/// Wine's program. Debian's package has no 64-bit `wine` on PATH.
const WINE: &str = "/usr/lib/wine/wine64";

/// Runs `cargo xtask platforms`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let mut rows = Vec::new();
    for platform in choose(&arguments.targets)? {
        say(&format!("\n== {}", platform.target));
        let mut row = Row::new(platform.target);
        match Tools::install(root, platform.kind) {
            Ok(tools) => {
                // The table shows the other targets, too.
                if let Err(error) = platform.play(&tools, arguments, &mut row) {
                    row.results.failed.push(error.to_string());
                }
            }
            Err(reason) => row.skip("everything", &reason),
        }
        rows.push(row);
    }
    say(&table(&rows));
    let failed = rows.iter().map(|row| row.results.failed.len()).sum();
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} failures").into()),
    }
}

/// The results of a target.
struct Row {
    target: &'static str,
    built: &'static str,
    results: Results,
    hooks: Option<usize>,
    size: Option<u64>,
    /// What was skipped, with its reason.
    skipped: Vec<(String, String)>,
}

impl Row {
    fn new(target: &'static str) -> Self {
        Self {
            target,
            built: "no",
            results: Results::default(),
            hooks: None,
            size: None,
            skipped: Vec::new(),
        }
    }

    fn skip(&mut self, what: &str, reason: &str) {
        self.skipped.push((what.to_owned(), reason.to_owned()));
    }
}

/// Returns the results as a table, with what failed and what was skipped below.
fn table(rows: &[Row]) -> String {
    let columns = "target | built | unit tests | black-box tests | hooks by hand | bytes | skipped";
    let mut text = format!("\n| {columns} |\n|{}\n", "---|".repeat(7));
    for row in rows {
        let hooks = row.hooks.map(|steps| format!("{steps} steps passed"));
        let hooks = hooks.unwrap_or_else(|| "not run".to_owned());
        let size = row.size.map_or_else(String::new, |size| size.to_string());
        let (unit, black_box) = (row.results.unit, row.results.black_box);
        let skipped = row.skipped.len();
        text += &format!(
            "| {} | {} | {unit} | {black_box} | {hooks} | {size} | {skipped} |\n",
            row.target, row.built
        );
    }
    for row in rows {
        for name in &row.results.failed {
            text += &format!("failed: {}: {name}\n", row.target);
        }
        for (what, reason) in &row.skipped {
            text += &format!("skipped: {}: {what}: {reason}\n", row.target);
        }
    }
    text
}

/// Returns the platforms of these targets, or all.
fn choose(targets: &[String]) -> Result<Vec<&'static Platform>> {
    if targets.is_empty() {
        return Ok(PLATFORMS.iter().collect());
    }
    let find = |target: &String| {
        let known = || PLATFORMS.map(|platform| platform.target).join(", ");
        PLATFORMS
            .iter()
            .find(|platform| platform.target == target)
            .ok_or_else(|| format!("invalid target {target:?}: expected one of {}", known()).into())
    };
    targets.iter().map(find).collect()
}

impl Platform {
    /// Does everything that the target can do.
    fn play(&self, tools: &Tools, arguments: &Arguments, row: &mut Row) -> Result {
        if self.kind == Kind::Apple {
            let mut clippy = self.cargo(tools, "clippy");
            clippy.args(["--workspace", "--all-targets", "--", "--deny", "warnings"]);
            run_command(&mut clippy)?;
            row.built = "checked, clippy";
            row.skip("linking, tests", "Apple's frameworks are not at hand");
            return Ok(());
        }
        let program = self.build(tools, &tools.target_folder)?;
        row.built = "yes";
        let size = fs::metadata(&program).map_err(at(&program))?.len();
        row.size = Some(size);
        say(&format!("built: {size} bytes, {}", program.display()));
        match self.guest(tools, &program)? {
            Ok(guest) => {
                row.hooks = Some(hand::play(&guest)?);
                if arguments.tests {
                    row.results = suite::run(self, tools, &program, &arguments.package)?;
                    for (test, reason) in suite::left_out(self.kind) {
                        row.skip(test, reason);
                    }
                }
            }
            Err(reason) => row.skip("hooks by hand, tests", &reason),
        }
        if arguments.reproduce {
            self.reproduce(tools, &program)?;
        }
        Ok(())
    }

    /// Returns a cargo command for the target, with the environment that finds its linker.
    fn cargo(&self, tools: &Tools, verb: &str) -> Command {
        let mut cargo = match self.kind {
            Kind::Windows => Command::new(setup::CARGO),
            _ => Command::new(tools.python_bin.join("cargo-zigbuild")),
        };
        let verb = match (self.kind, verb) {
            (Kind::Musl { .. }, "build") => "zigbuild",
            _ => verb,
        };
        cargo
            .current_dir(&tools.root)
            .args([verb, "--locked", "--target", self.target])
            .arg("-Zbuild-std=std,panic_abort")
            .envs(tools.variables())
            .env("CARGO_TARGET_DIR", &tools.target_folder);
        match self.kind {
            // zig brings its own start files.
            Kind::Musl { .. } if verb == "zigbuild" => cargo.env(
                "RUSTFLAGS",
                format!("-C link-self-contained=no {NO_UNWIND_TABLES}"),
            ),
            Kind::Musl { .. } => cargo
                .env("RUSTFLAGS", "-C link-self-contained=no")
                .env("RUSTDOCFLAGS", "-C link-self-contained=no"),
            Kind::Windows => cargo.env("CC_x86_64_pc_windows_gnu", setup::MINGW),
            Kind::Apple => &mut cargo,
        };
        cargo
    }

    /// Builds the release program into a target folder.
    fn build(&self, tools: &Tools, folder: &Path) -> Result<PathBuf> {
        let mut build = self.cargo(tools, "build");
        build.args(["--release", "--package", "anamnesis-cli"]);
        run_command(build.env("CARGO_TARGET_DIR", folder))?;
        Ok(self.program(folder))
    }

    fn program(&self, folder: &Path) -> PathBuf {
        folder
            .join(self.target)
            .join("release")
            .join(self.file_name())
    }

    /// Returns the name that the program has for a path of this machine.
    fn named(&self, path: &Path) -> String {
        let path = path.to_string_lossy();
        if self.kind == Kind::Windows {
            format!("Z:{}", path.replace('/', "\\"))
        } else {
            path.into_owned()
        }
    }

    fn file_name(&self) -> &'static str {
        if self.kind == Kind::Windows {
            "anamnesis.exe"
        } else {
            "anamnesis"
        }
    }

    /// Returns how to run the program, or why that is not possible.
    fn guest(
        &self,
        tools: &Tools,
        program: &Path,
    ) -> Result<std::result::Result<Guest<'_>, String>> {
        match self.kind {
            Kind::Windows | Kind::Apple if !is_installed(WINE) => {
                Ok(Err(format!("{WINE} is not installed")))
            }
            Kind::Windows | Kind::Apple => Ok(Ok(Guest::in_wine(self, tools, program)?)),
            Kind::Musl { qemu: Some(qemu) } => match setup::register(qemu) {
                Ok(()) => Ok(Ok(Guest::on_linux(self, program)?)),
                Err(reason) => Ok(Err(reason)),
            },
            Kind::Musl { qemu: None } => Ok(Ok(Guest::on_linux(self, program)?)),
        }
    }

    /// Builds a copy of the sources in another folder and compares the programs.
    fn reproduce(&self, tools: &Tools, program: &Path) -> Result {
        let folder = tempfile::Builder::new()
            .prefix("another-place-")
            .tempdir_in(&tools.target_folder)?;
        let copy = folder.path().join("sources");
        setup::copy_sources(&tools.root, &copy)?;
        let elsewhere = tools.in_checkout(copy);
        let second = self.build(&elsewhere, &folder.path().join("target"))?;
        if fs::read(&second).map_err(at(&second))? == fs::read(program).map_err(at(program))? {
            say("reproducible: two folders give the same bytes");
            return Ok(());
        }
        let kept = folder.keep();
        Err(format!(
            "{}: two folders give different bytes; see {}",
            self.target,
            kept.display()
        )
        .into())
    }
}

/// Returns the programs that `cargo xtask platforms` has built, by their target of a release.
pub(crate) fn built(root: &Path) -> Vec<(&'static str, PathBuf)> {
    let folder = setup::target_folder_of(&target_folder(root));
    let programs = PLATFORMS
        .iter()
        .map(|it| (it.released_as, it.program(&folder)));
    programs.filter(|(_, program)| program.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::RELEASE_TARGETS;

    #[test]
    fn every_target_of_a_release_has_one_platform() {
        let mut released = PLATFORMS.map(|platform| platform.released_as);
        released.sort_unstable();
        assert_eq!(released, RELEASE_TARGETS);
    }

    #[test]
    fn the_release_is_built_with_the_same_flags() {
        let setup = include_str!("../../../.github/build-setup.yml");
        assert!(setup.contains(&format!("RUSTFLAGS={NO_UNWIND_TABLES}\"")));
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let error = choose(&["x86_64-unknown-linux-gnu".to_owned()])
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("aarch64-unknown-linux-musl"), "{error}");
        assert_eq!(choose(&[]).unwrap().len(), PLATFORMS.len());
    }
}
