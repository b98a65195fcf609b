//! Assembles the plugin as a person installs it: manifests, hooks, server, commands, skills, launcher
//! and a binary for each platform, and nothing of the sources.
//!
//! Invariants: every input is checked before the output is touched; the output is built beside its
//! place and renamed into it; a folder that is not an assembled plugin is never replaced. The tree
//! is a marketplace of its own (`"source": "./"`), so that it can be installed as it stands.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Result, at, cargo, say};

/// The targets of a release. `dist-workspace.toml` names the same ones; a test compares them.
pub(crate) const RELEASE_TARGETS: [&str; 5] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-musl",
];

/// The checksums of all other files of the tree, in the form `sha256sum --check` reads.
const CHECKSUMS: &str = "SHA256SUMS";

/// What the tree takes from the checkout beside the binaries. Folders are taken whole.
const PARTS: [&str; 11] = [
    ".gitattributes",
    ".claude-plugin",
    ".mcp.json",
    "hooks",
    "commands",
    "skills",
    "bin/anamnesis",
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// Assemble the plugin tree
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Take TARGET/anamnesis[.exe] for every release target from this folder
    ///
    /// Without it, the tree gets this checkout's own build for this machine.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Which own build to make and take
    #[arg(long, value_enum, default_value_t = Profile::Release, conflicts_with = "binaries")]
    profile: Profile,
    /// Where the tree goes; an earlier one there is replaced [default: target/plugin]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The two cargo profiles a checkout's own build comes from.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    Release,
    Debug,
}

/// One native binary and the platform it was built for.
pub(crate) struct Binary {
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

/// What a tree is made of.
pub(crate) struct Options {
    /// The checkout that gives manifests, hooks, commands and skills.
    pub(crate) root: PathBuf,
    /// The binaries, at least one.
    pub(crate) binaries: Vec<Binary>,
    /// Where the tree goes. Absent, empty, or an assembled tree that is replaced.
    pub(crate) out: PathBuf,
}

/// What was assembled.
pub(crate) struct Report {
    pub(crate) out: PathBuf,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// The task: `cargo xtask plugin`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let binaries = match &arguments.binaries {
        Some(folder) => release_binaries(folder),
        None => vec![own_build(root, arguments.profile)?],
    };
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| root.join("target").join("plugin"));
    let report = assemble(&Options {
        root: root.to_path_buf(),
        binaries,
        out,
    })?;
    say(&format!(
        "{}: {} files, {} bytes",
        report.out.display(),
        report.files,
        report.bytes
    ));
    Ok(())
}

/// Returns the binaries of a release, as the release workflow lays them out: a folder a target.
fn release_binaries(folder: &Path) -> Vec<Binary> {
    let binary = |target: &str| Binary {
        target: target.to_owned(),
        path: folder.join(target).join(file_name(target)),
    };
    RELEASE_TARGETS
        .iter()
        .map(|target| binary(target))
        .collect()
}

/// Builds this checkout's binary for this machine, which takes a moment where nothing changed.
///
/// # Errors
/// When the build fails, or cargo does not say where the program is.
pub(crate) fn own_build(root: &Path, profile: Profile) -> Result<Binary> {
    let mut build = cargo(root);
    build.args(["build", "--package", "anamnesis-cli", "--bin", "anamnesis"]);
    build.arg("--message-format=json-render-diagnostics");
    if profile == Profile::Release {
        build.arg("--release");
    }
    let output = build.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo build: {}", output.status).into());
    }
    let program = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name") == Some(&Value::from("anamnesis")))
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .ok_or("cargo built the binary, but did not say where")?;
    Ok(Binary {
        target: host_target()?,
        path: program,
    })
}

/// Returns the target triple that the toolchain builds for by itself.
pub(crate) fn host_target() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc -vV names no host".into())
}

/// Assembles the tree and puts it in its place.
///
/// # Errors
/// When a part or a binary is missing or is not what it should be, or when `out` is a folder of
/// something else: the output is then as it was.
pub(crate) fn assemble(options: &Options) -> Result<Report> {
    let files = collect(options)?;
    check_replaceable(&options.out)?;

    let parent = options
        .out
        .parent()
        .ok_or("the root folder cannot be the output")?;
    fs::create_dir_all(parent).map_err(at(parent))?;
    // A folder beside the place is on the same file system: the renames below cannot copy.
    let scratch = tempfile::Builder::new()
        .prefix(".plugin-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let fresh = scratch.path().join("fresh");
    let mut checksums = String::new();
    let mut bytes = 0;
    for (name, file) in &files {
        write_file(&fresh.join(name), &file.content, file.executable)?;
        let _ = writeln!(checksums, "{}  {name}", hex(&Sha256::digest(&file.content)));
        bytes += file.content.len() as u64;
    }
    write_file(&fresh.join(CHECKSUMS), checksums.as_bytes(), false)?;

    let earlier = scratch.path().join("earlier");
    if options.out.exists() {
        fs::rename(&options.out, &earlier).map_err(at(&options.out))?;
    }
    if let Err(error) = fs::rename(&fresh, &options.out) {
        // Without this the place would be empty, which is worse than old.
        let _ = fs::rename(&earlier, &options.out);
        return Err(at(&options.out)(error));
    }
    Ok(Report {
        out: options.out.clone(),
        files: files.len() + 1,
        bytes,
    })
}

/// A file of the tree, read and checked.
struct File {
    content: Vec<u8>,
    executable: bool,
}

/// Reads and checks everything that goes into the tree, by its name there, with `/` between parts.
fn collect(options: &Options) -> Result<BTreeMap<String, File>> {
    let mut files = BTreeMap::new();
    for part in PARTS {
        take(&options.root, part, &mut files)?;
    }
    let marketplace = files
        .get_mut(".claude-plugin/marketplace.json")
        .ok_or(".claude-plugin/marketplace.json is missing")?;
    marketplace.content = marketplace_of_its_own(&marketplace.content)?;

    if options.binaries.is_empty() {
        return Err("a plugin without a binary does nothing".into());
    }
    for binary in &options.binaries {
        let content = read_regular(&binary.path)?;
        check_format(&binary.target, &content)
            .map_err(|reason| format!("{}: {reason}", binary.path.display()))?;
        let file = File {
            content,
            executable: true,
        };
        if files.insert(place_of(&binary.target), file).is_some() {
            return Err(format!("two binaries for {}", binary.target).into());
        }
    }
    Ok(files)
}

/// Takes a file, or all files below a folder.
fn take(root: &Path, name: &str, files: &mut BTreeMap<String, File>) -> Result {
    let path = root.join(name);
    if !fs::symlink_metadata(&path).map_err(at(&path))?.is_dir() {
        let file = File {
            content: read_regular(&path)?,
            executable: name == "bin/anamnesis",
        };
        files.insert(name.to_owned(), file);
        return Ok(());
    }
    for entry in fs::read_dir(&path).map_err(at(&path))? {
        let entry = entry.map_err(at(&path))?.file_name();
        let entry = entry
            .to_str()
            .ok_or_else(|| format!("{}: a name is not text", path.display()))?;
        take(root, &format!("{name}/{entry}"), files)?;
    }
    Ok(())
}

/// Reads a file that must be one: not a link, not a folder, not empty.
fn read_regular(path: &Path) -> Result<Vec<u8>> {
    if !fs::symlink_metadata(path).map_err(at(path))?.is_file() {
        return Err(format!("{}: not a regular file", path.display()).into());
    }
    let content = fs::read(path).map_err(at(path))?;
    if content.is_empty() {
        return Err(format!("{}: empty", path.display()).into());
    }
    Ok(content)
}

/// Returns where a binary stands in the tree. Windows finds the one beside the launcher by itself.
fn place_of(target: &str) -> String {
    if target.contains("-windows-") {
        "bin/anamnesis.exe".to_owned()
    } else {
        format!("bin/native/{target}/anamnesis")
    }
}

fn file_name(target: &str) -> &'static str {
    if target.contains("-windows-") {
        "anamnesis.exe"
    } else {
        "anamnesis"
    }
}

/// Turns the repository's marketplace, whose entry names the release branch, into that of the tree.
fn marketplace_of_its_own(content: &[u8]) -> Result<Vec<u8>> {
    let mut marketplace: Value = serde_json::from_slice(content)?;
    *marketplace
        .pointer_mut("/plugins/0/source")
        .ok_or("marketplace.json lists no plugin")? = Value::from("./");
    let mut content = serde_json::to_vec_pretty(&marketplace)?;
    content.push(b'\n');
    Ok(content)
}

/// Checks that a program is of the format and for the processor that its target names.
fn check_format(target: &str, content: &[u8]) -> std::result::Result<(), String> {
    let (format, machine) = if target.contains("-linux-") {
        ("ELF", elf_machine(content))
    } else if target.contains("-apple-") {
        ("Mach-O", mach_o_machine(content))
    } else if target.contains("-windows-") {
        ("PE", pe_machine(content))
    } else {
        return Err(format!("nothing is known of the target {target}"));
    };
    let machine =
        machine.ok_or_else(|| format!("not a 64-bit {format} program, as {target} wants"))?;
    if target.split('-').next() == Some(machine) {
        Ok(())
    } else {
        Err(format!("built for {machine}, not for {target}"))
    }
}

/// Returns the processor of a little-endian 64-bit ELF program.
fn elf_machine(content: &[u8]) -> Option<&'static str> {
    content.strip_prefix(b"\x7fELF\x02\x01")?;
    match content.get(18..20)? {
        [0x3e, 0] => Some("x86_64"),
        [0xb7, 0] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

/// Returns the processor of a 64-bit Mach-O program. A universal one is not expected.
fn mach_o_machine(content: &[u8]) -> Option<&'static str> {
    match content.strip_prefix(b"\xcf\xfa\xed\xfe")?.get(..4)? {
        [0x07, 0, 0, 0x01] => Some("x86_64"),
        [0x0c, 0, 0, 0x01] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

/// Returns the processor of a Windows program. Its DOS header says where the real one begins.
fn pe_machine(content: &[u8]) -> Option<&'static str> {
    content.strip_prefix(b"MZ")?;
    let start = u32::from_le_bytes(content.get(0x3c..0x40)?.try_into().ok()?);
    let header = content
        .get(usize::try_from(start).ok()?..)?
        .strip_prefix(b"PE\0\0")?;
    match header.get(..2)? {
        [0x64, 0x86] => Some("x86_64"),
        [0x64, 0xaa] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

/// Refuses to replace anything but an earlier tree or an empty folder.
fn check_replaceable(out: &Path) -> Result {
    let Ok(metadata) = fs::symlink_metadata(out) else {
        return Ok(());
    };
    let is_tree = || out.join(CHECKSUMS).is_file() && out.join(".claude-plugin").is_dir();
    let is_empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if metadata.is_dir() && (is_tree() || is_empty()) {
        Ok(())
    } else {
        Err(format!("{}: not an assembled plugin, left alone", out.display()).into())
    }
}

/// Writes a file of the tree, with the mode that git and the client then keep.
fn write_file(path: &Path, content: &[u8], executable: bool) -> Result {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::write(path, content).map_err(at(path))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if executable { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path))?;
    }
    #[cfg(not(unix))]
    let _ = executable;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a program for `target`, enough for the check.
    fn program(target: &str) -> Vec<u8> {
        let arm = target.starts_with("aarch64");
        let mut content = vec![0; 256];
        if target.contains("-linux-") {
            content[..6].copy_from_slice(b"\x7fELF\x02\x01");
            content[18] = if arm { 0xb7 } else { 0x3e };
        } else if target.contains("-apple-") {
            content[..8].copy_from_slice(b"\xcf\xfa\xed\xfe\x07\0\0\x01");
            content[4] = if arm { 0x0c } else { 0x07 };
        } else {
            content[..2].copy_from_slice(b"MZ");
            content[0x3c] = 0x80;
            content[0x80..0x86].copy_from_slice(b"PE\0\0\x64\x86");
        }
        content
    }

    /// A checkout with the parts of a plugin, and a binary for every release target beside it.
    fn checkout() -> (tempfile::TempDir, Options) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("check out");
        let parts = [
            (".claude-plugin/plugin.json", r#"{"name": "anamnesis"}"#),
            (
                ".claude-plugin/marketplace.json",
                r#"{"plugins": [{"name": "anamnesis", "source": {"source": "github"}}]}"#,
            ),
            (".mcp.json", "{}"),
            ("hooks/hooks.json", "{}"),
            ("commands/memory-status.md", "status"),
            ("skills/writing-notes/SKILL.md", "skill"),
            ("bin/anamnesis", "#!/bin/sh\n"),
            ("bin/native/stale/anamnesis", "left by an earlier try"),
            ("crates/cli/src/main.rs", "fn main() {}"),
            (".gitattributes", "* -text"),
            ("README.md", "readme"),
            ("CHANGELOG.md", "changes"),
            ("LICENSE-APACHE", "licence"),
            ("LICENSE-MIT", "licence"),
        ];
        for (name, content) in parts {
            write_file(&root.join(name), content.as_bytes(), false).unwrap();
        }
        let binaries = release_binaries(&folder.path().join("binaries"));
        for binary in &binaries {
            write_file(&binary.path, &program(&binary.target), false).unwrap();
        }
        let out = folder.path().join("out");
        (
            folder,
            Options {
                root,
                binaries,
                out,
            },
        )
    }

    /// All files below a folder, with their modes where there are modes.
    fn listing(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                names.push(format!("{} {}", mode(&path), name.replace('\\', "/")));
            }
        }
        names.sort_by(|a, b| a[4..].cmp(&b[4..]));
        names
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        format!(
            "{:o}",
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        )
    }

    /// Where files have no modes: what the tree asks for.
    #[cfg(not(unix))]
    fn mode(path: &Path) -> &'static str {
        if path.components().any(|part| part.as_os_str() == "bin") {
            "755"
        } else {
            "644"
        }
    }

    #[test]
    fn the_tree_holds_what_a_person_installs_and_no_sources() {
        let (_folder, options) = checkout();
        let report = assemble(&options).unwrap();
        let expected = [
            "644 .claude-plugin/marketplace.json",
            "644 .claude-plugin/plugin.json",
            "644 .gitattributes",
            "644 .mcp.json",
            "644 CHANGELOG.md",
            "644 LICENSE-APACHE",
            "644 LICENSE-MIT",
            "644 README.md",
            "644 SHA256SUMS",
            "755 bin/anamnesis",
            "755 bin/anamnesis.exe",
            "755 bin/native/aarch64-apple-darwin/anamnesis",
            "755 bin/native/aarch64-unknown-linux-musl/anamnesis",
            "755 bin/native/x86_64-apple-darwin/anamnesis",
            "755 bin/native/x86_64-unknown-linux-musl/anamnesis",
            "644 commands/memory-status.md",
            "644 hooks/hooks.json",
            "644 skills/writing-notes/SKILL.md",
        ];
        assert_eq!(listing(&options.out), expected);
        assert_eq!(report.files, expected.len());
    }

    #[test]
    fn the_tree_is_a_marketplace_of_its_own() {
        let (_folder, options) = checkout();
        assemble(&options).unwrap();
        let path = options.out.join(".claude-plugin/marketplace.json");
        let marketplace: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(
            marketplace.pointer("/plugins/0/source"),
            Some(&Value::from("./"))
        );
    }

    #[test]
    fn every_other_file_stands_in_the_checksums() {
        let (_folder, options) = checkout();
        let report = assemble(&options).unwrap();
        let checksums = fs::read_to_string(options.out.join(CHECKSUMS)).unwrap();
        assert_eq!(checksums.lines().count(), report.files - 1);
        for line in checksums.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let content = fs::read(options.out.join(name)).unwrap();
            assert_eq!(sum, hex(&Sha256::digest(content)), "{name}");
        }
    }

    #[test]
    fn an_earlier_tree_is_replaced_whole_and_nothing_is_left_beside_it() {
        let (folder, options) = checkout();
        assemble(&options).unwrap();
        fs::write(
            options.out.join("commands/memory-gone.md"),
            "of an earlier version",
        )
        .unwrap();
        assemble(&options).unwrap();
        assert!(!options.out.join("commands/memory-gone.md").exists());
        let mut beside: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        beside.sort();
        assert_eq!(beside, ["binaries", "check out", "out"]);
    }

    #[test]
    fn a_bad_binary_leaves_the_output_untouched() {
        type Harm = fn(&Path);
        let harms: [(&str, Harm, &str); 5] = [
            (
                "missing",
                |path| fs::remove_file(path).unwrap(),
                "x86_64-apple-darwin",
            ),
            ("empty", |path| fs::write(path, "").unwrap(), "empty"),
            (
                "a script",
                |path| fs::write(path, "#!/bin/sh\n").unwrap(),
                "not a 64-bit Mach-O",
            ),
            (
                "cut off",
                |path| fs::write(path, b"\xcf\xfa\xed\xfe\x07").unwrap(),
                "not a 64-bit",
            ),
            (
                "of another processor",
                |path| fs::write(path, program("aarch64-apple-darwin")).unwrap(),
                "built for aarch64, not for x86_64-apple-darwin",
            ),
        ];
        for (name, harm, reason) in harms {
            let (_folder, options) = checkout();
            assemble(&options).unwrap();
            fs::write(options.out.join("README.md"), "the earlier tree").unwrap();
            let before = listing(&options.out);
            harm(
                &options
                    .binaries
                    .iter()
                    .find(|it| it.target == "x86_64-apple-darwin")
                    .unwrap()
                    .path,
            );

            let Err(error) = assemble(&options) else {
                panic!("{name}: assembled all the same")
            };
            assert!(error.to_string().contains(reason), "{name}: {error}");
            assert_eq!(listing(&options.out), before, "{name}");
            let readme = fs::read_to_string(options.out.join("README.md")).unwrap();
            assert_eq!(readme, "the earlier tree", "{name}");
        }
    }

    #[test]
    fn a_missing_part_makes_no_tree() {
        let (_folder, options) = checkout();
        fs::remove_file(options.root.join("LICENSE-MIT")).unwrap();
        assert!(assemble(&options).is_err());
        assert!(!options.out.exists());
    }

    #[test]
    fn a_folder_of_something_else_is_not_replaced() {
        let (_folder, mut options) = checkout();
        options.out.clone_from(&options.root);
        assert!(assemble(&options).is_err());
        assert!(options.root.join("crates/cli/src/main.rs").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_taken_for_a_binary() {
        let (_folder, options) = checkout();
        let binary = &options.binaries[0].path;
        let real = binary.with_extension("real");
        fs::rename(binary, &real).unwrap();
        std::os::unix::fs::symlink(&real, binary).unwrap();
        let Err(error) = assemble(&options) else {
            panic!("assembled all the same")
        };
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn formats_are_told_apart() {
        for target in RELEASE_TARGETS {
            for of in RELEASE_TARGETS {
                assert_eq!(
                    check_format(target, &program(of)).is_ok(),
                    target == of,
                    "{of} as {target}"
                );
            }
        }
    }

    #[test]
    fn no_length_of_a_program_breaks_the_check() {
        for target in RELEASE_TARGETS {
            let whole = program(target);
            for length in 0..whole.len() {
                let _ = check_format(target, &whole[..length]);
            }
        }
        // A header that points past the end.
        let mut wild = program("x86_64-pc-windows-msvc");
        wild[0x3c..0x40].fill(0xff);
        assert!(check_format("x86_64-pc-windows-msvc", &wild).is_err());
    }
}
