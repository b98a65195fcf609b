//! Assembles the plugin as a user installs it: manifests, hooks, server, commands, skills, launcher
//! and a binary per platform, without sources.
//!
//! Invariants: every input is checked before the output is changed. The output is built beside its
//! destination and renamed. A folder that is not an assembled plugin is never replaced. The tree is
//! also a marketplace (`"source": "./"`), so that it can be installed directly.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Result, at, cargo, output_of, say};

/// The targets of a release. A test compares them with `dist-workspace.toml`.
pub const RELEASE_TARGETS: [&str; 5] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-musl",
];

/// The checksums of all other files, in the format of `sha256sum --check`.
const CHECKSUMS: &str = "SHA256SUMS";

/// The parts of the checkout that the tree contains, in addition to the binaries.
const PARTS: [&str; 14] = [
    ".gitattributes",
    ".agents",
    ".claude-plugin",
    ".codex-plugin",
    ".mcp.json",
    "hooks",
    "hosts",
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
pub struct Arguments {
    /// Take TARGET/anamnesis[.exe] for every release target from this folder
    ///
    /// Without it, the tree contains a build of this checkout for this machine.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Profile of the checkout's own build
    #[arg(long, value_enum, default_value_t = Profile::Release, conflicts_with = "binaries")]
    profile: Profile,
    /// Assemble the plugin `anamnesis-semantic` of this embedding model instead [default output:
    /// target/semantic]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["binaries", "profile"])]
    semantic: Option<PathBuf>,
    /// Output folder; an earlier tree is replaced [default: target/plugin]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The cargo profile of the checkout's own build.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// Optimised, as released
    Release,
    /// Not optimised, as the tests build it
    Debug,
}

/// A native binary and its platform.
pub struct Binary {
    /// The target triple.
    pub target: String,
    /// The file.
    pub path: PathBuf,
}

/// The inputs of [`assemble`].
pub struct Options {
    /// The checkout with manifests, hooks, commands and skills.
    pub root: PathBuf,
    /// The binaries, at least one.
    pub binaries: Vec<Binary>,
    /// The output folder. It is absent, empty, or an assembled tree that is replaced.
    pub out: PathBuf,
}

/// The result of [`assemble`].
pub struct Report {
    /// The folder that was written.
    pub out: PathBuf,
    /// The number of its files.
    pub files: usize,
    /// The size of its files together.
    pub bytes: u64,
}

/// Runs `cargo xtask plugin`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let out = |name: &str| {
        let out = arguments.out.clone();
        out.unwrap_or_else(|| root.join("target").join(name))
    };
    let report = if let Some(model) = &arguments.semantic {
        check_documented(root, model)?;
        assemble_semantic(root, model, &out("semantic"))?
    } else {
        let binaries = match &arguments.binaries {
            Some(folder) => release_binaries(folder),
            None => vec![own_build(root, arguments.profile)?],
        };
        assemble(&Options {
            root: root.to_path_buf(),
            binaries,
            out: out("plugin"),
        })?
    };
    say(&format!(
        "{}: {} files, {} bytes",
        report.out.display(),
        report.files,
        report.bytes
    ));
    Ok(())
}

/// Returns the binaries of a release, laid out by the release workflow as one folder per target.
pub fn release_binaries(folder: &Path) -> Vec<Binary> {
    let binary = |target: &str| Binary {
        target: target.to_owned(),
        path: folder.join(target).join(file_name(target)),
    };
    RELEASE_TARGETS
        .iter()
        .map(|target| binary(target))
        .collect()
}

/// Returns the program that was named, or this checkout's own build.
///
/// # Errors
/// Returns an error if there is no such program, or as [`own_build`].
pub fn given_or_built(root: &Path, given: Option<&PathBuf>, profile: Profile) -> Result<PathBuf> {
    match given {
        Some(given) => Ok(dunce::canonicalize(given).map_err(at(given))?),
        None => Ok(own_build(root, profile)?.path),
    }
}

/// Builds this checkout's binary for this machine.
///
/// # Errors
/// Returns an error if the build fails or cargo does not report the program's path.
pub fn own_build(root: &Path, profile: Profile) -> Result<Binary> {
    let mut build = cargo(root);
    build.args(["build", "--bin", "anamnesis"]);
    build.arg("--message-format=json-render-diagnostics");
    match profile {
        Profile::Release => build.args(["--release", "--package", "anamnesis-cli"]),
        // As the tests build it, so that it is compiled once.
        Profile::Debug => build.args(["--workspace", "--all-features"]),
    };
    let output = build.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo build: {}", output.status).into());
    }
    let program = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name") == Some(&Value::from("anamnesis")))
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .ok_or("cargo built the binary but did not report its path")?;
    Ok(Binary {
        target: host_target()?,
        path: program,
    })
}

/// Returns the toolchain's default target triple.
pub fn host_target() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc -vV reports no host".into())
}

/// Assembles the tree in the output folder.
///
/// # Errors
/// Returns an error if a part or a binary is missing or invalid, or if `out` is another kind of
/// folder. The output is then unchanged.
pub fn assemble(options: &Options) -> Result<Report> {
    let files = collect(options)?;
    write_tree(&files, &options.out)
}

/// Refuses a model whose checksum is not the documented one.
fn check_documented(root: &Path, model: &Path) -> Result {
    let page = root.join("docs/reference/models.md");
    let documented = fs::read_to_string(&page).map_err(at(&page))?;
    let hash = hex(&Sha256::digest(read_regular(model)?));
    if documented.contains(&hash) {
        return Ok(());
    }
    let (model, page) = (model.display(), page.display());
    Err(format!("{model} has the SHA-256 {hash}: expected one that {page} names").into())
}

/// Assembles the plugin that is one embedding model.
///
/// # Errors
/// Returns an error if the file does not begin as a model does, or as [`assemble`].
pub fn assemble_semantic(root: &Path, model: &Path, out: &Path) -> Result<Report> {
    let mut files = BTreeMap::new();
    let folder = root.join("semantic");
    for part in [".claude-plugin", "README.md"] {
        take(&folder, part, &mut files)?;
    }
    let content = read_regular(model)?;
    if !content.starts_with(&anamnesis_embedding::MAGIC) {
        return Err(format!("{}: not an embedding model", model.display()).into());
    }
    let file = File {
        content,
        executable: false,
    };
    files.insert(anamnesis_embedding::FILE_NAME.to_owned(), file);
    write_tree(&files, out)
}

/// Writes the files and their checksums to the output folder, which is replaced as a whole.
fn write_tree(files: &BTreeMap<String, File>, out: &Path) -> Result<Report> {
    check_replaceable(out)?;
    let parent = out.parent().ok_or("the root folder cannot be the output")?;
    fs::create_dir_all(parent).map_err(at(parent))?;
    // On the same file system, so that the renames below do not copy.
    let scratch = tempfile::Builder::new()
        .prefix(".plugin-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let fresh = scratch.path().join("fresh");
    let mut checksums = String::new();
    let mut bytes = 0;
    for (name, file) in files {
        write_file(&fresh.join(name), &file.content, file.executable)?;
        let _ = writeln!(checksums, "{}  {name}", hex(&Sha256::digest(&file.content)));
        bytes += file.content.len() as u64;
    }
    write_file(&fresh.join(CHECKSUMS), checksums.as_bytes(), false)?;

    let earlier = scratch.path().join("earlier");
    if out.exists() {
        fs::rename(out, &earlier).map_err(at(out))?;
    }
    if let Err(error) = fs::rename(&fresh, out) {
        // Restores the earlier tree, because an old tree is better than none.
        let _ = fs::rename(&earlier, out);
        return Err(at(out)(error));
    }
    Ok(Report {
        out: out.to_path_buf(),
        files: files.len() + 1,
        bytes,
    })
}

/// A file of the tree after its checks.
struct File {
    content: Vec<u8>,
    executable: bool,
}

/// Reads and checks all files of the tree, by their names with `/` as separator.
fn collect(options: &Options) -> Result<BTreeMap<String, File>> {
    let mut files = BTreeMap::new();
    for part in PARTS {
        take(&options.root, part, &mut files)?;
    }
    let marketplace = files
        .get_mut(".claude-plugin/marketplace.json")
        .ok_or(".claude-plugin/marketplace.json is missing")?;
    marketplace.content = own_marketplace(&marketplace.content)?;

    if options.binaries.is_empty() {
        return Err("no binary: expected at least one".into());
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

/// Adds a file, or all files below a folder.
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
            .ok_or_else(|| format!("{}: a file name is not UTF-8", path.display()))?;
        take(root, &format!("{name}/{entry}"), files)?;
    }
    Ok(())
}

/// Reads a non-empty regular file. Refuses links and folders.
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

/// Returns the path of a binary in the tree. Windows finds the one beside the launcher.
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

/// Rewrites the repository's marketplace, whose entry names the release branch, for the tree.
fn own_marketplace(content: &[u8]) -> Result<Vec<u8>> {
    let mut marketplace: Value = serde_json::from_slice(content)?;
    *marketplace
        .pointer_mut("/plugins/0/source")
        .ok_or("marketplace.json lists no plugin")? = Value::from("./");
    let mut content = serde_json::to_vec_pretty(&marketplace)?;
    content.push(b'\n');
    Ok(content)
}

/// Checks that a program has the format and processor of its target.
fn check_format(target: &str, content: &[u8]) -> std::result::Result<(), String> {
    let (format, machine) = if target.contains("-linux-") {
        ("ELF", elf_machine(content))
    } else if target.contains("-apple-") {
        ("Mach-O", mach_o_machine(content))
    } else if target.contains("-windows-") {
        ("PE", pe_machine(content))
    } else {
        return Err(format!("unknown target {target}"));
    };
    let machine = machine
        .ok_or_else(|| format!("not a 64-bit {format} program: expected one for {target}"))?;
    if target.split('-').next() == Some(machine) {
        Ok(())
    } else {
        Err(format!("built for {machine}: expected {target}"))
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

/// Returns the processor of a 64-bit Mach-O program. Universal programs are not supported.
fn mach_o_machine(content: &[u8]) -> Option<&'static str> {
    match content.strip_prefix(b"\xcf\xfa\xed\xfe")?.get(..4)? {
        [0x07, 0, 0, 0x01] => Some("x86_64"),
        [0x0c, 0, 0, 0x01] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

/// Returns the processor of a Windows program. The DOS header has the offset of the PE header.
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

/// Refuses to replace anything but an assembled tree or an empty folder.
fn check_replaceable(out: &Path) -> Result {
    let Ok(metadata) = fs::symlink_metadata(out) else {
        return Ok(());
    };
    let is_tree = || out.join(CHECKSUMS).is_file() && out.join(".claude-plugin").is_dir();
    let is_empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if metadata.is_dir() && (is_tree() || is_empty()) {
        Ok(())
    } else {
        Err(format!(
            "{}: not an assembled plugin; choose another output folder",
            out.display()
        )
        .into())
    }
}

/// A version on the branch.
pub struct Published {
    /// The id of the commit.
    pub commit: String,
    /// The name of its tag.
    pub tag: String,
}

/// Commits an assembled plugin on its branch of a repository, as the release workflow does.
///
/// # Errors
/// Returns an error if the version was published before.
pub fn publish(root: &Path, tree: &Path, repository: &Path, source: &str) -> Result<Published> {
    let mut script = Command::new("sh");
    script.arg(root.join(".github/publish-tree"));
    let printed = output_of(script.arg(tree).arg(repository).arg(source))?;
    match printed.split(' ').collect::<Vec<_>>()[..] {
        [commit, tag, _] => Ok(Published {
            commit: commit.to_owned(),
            tag: tag.to_owned(),
        }),
        _ => Err(format!("publish-tree printed {printed:?}").into()),
    }
}

/// Writes a file of the tree with the mode that git and the client keep.
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

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first bytes of a program for `target`.
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

    #[test]
    fn a_model_that_no_page_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let model = root.join("model.bin");
        let arguments = Arguments {
            binaries: None,
            profile: Profile::Release,
            semantic: Some(model.clone()),
            out: Some(root.join("out")),
        };
        fs::create_dir_all(root.join("docs/reference")).unwrap();
        let named = hex(&Sha256::digest(b"the model"));
        fs::write(root.join("docs/reference/models.md"), named).unwrap();
        fs::write(&model, "another model").unwrap();
        let error = run(root, &arguments).unwrap_err().to_string();
        assert!(error.contains("expected one that"), "{error}");
        assert!(!root.join("out").exists());
        fs::write(&model, "the model").unwrap();
        check_documented(root, &model).unwrap();
    }

    /// Creates a checkout with the parts of a plugin and a binary for every release target.
    fn checkout() -> (tempfile::TempDir, Options) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("check out");
        let parts = [
            (".claude-plugin/plugin.json", r#"{"name": "anamnesis"}"#),
            (
                ".claude-plugin/marketplace.json",
                r#"{"plugins": [{"name": "anamnesis", "source": {"source": "github"}}]}"#,
            ),
            (".agents/plugins/marketplace.json", "{}"),
            (".codex-plugin/plugin.json", "{}"),
            (".mcp.json", "{}"),
            ("hosts/codex/hooks.json", "{}"),
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

    /// Returns all files below a folder with their modes.
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

    /// Without file modes: the mode that the tree asks for.
    #[cfg(not(unix))]
    fn mode(path: &Path) -> &'static str {
        if path.components().any(|part| part.as_os_str() == "bin") {
            "755"
        } else {
            "644"
        }
    }

    #[test]
    fn the_tree_has_the_installed_files_and_no_sources() {
        let (_folder, options) = checkout();
        let report = assemble(&options).unwrap();
        let expected = [
            "644 .agents/plugins/marketplace.json",
            "644 .claude-plugin/marketplace.json",
            "644 .claude-plugin/plugin.json",
            "644 .codex-plugin/plugin.json",
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
            "644 hosts/codex/hooks.json",
            "644 skills/writing-notes/SKILL.md",
        ];
        assert_eq!(listing(&options.out), expected);
        assert_eq!(report.files, expected.len());
    }

    #[test]
    fn the_tree_is_its_own_marketplace() {
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
    fn checksums_list_every_other_file() {
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
    fn an_earlier_tree_is_replaced_without_leftovers() {
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
    fn an_invalid_binary_leaves_the_output_unchanged() {
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
                "built for aarch64: expected x86_64-apple-darwin",
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
    fn a_missing_part_is_an_error() {
        let (_folder, options) = checkout();
        fs::remove_file(options.root.join("LICENSE-MIT")).unwrap();
        assert!(assemble(&options).is_err());
        assert!(!options.out.exists());
    }

    #[test]
    fn a_folder_that_is_no_plugin_is_not_replaced() {
        let (_folder, mut options) = checkout();
        options.out.clone_from(&options.root);
        assert!(assemble(&options).is_err());
        assert!(options.root.join("crates/cli/src/main.rs").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_is_refused_as_binary() {
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
    fn binary_formats_are_recognised() {
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
    fn truncated_programs_do_not_panic() {
        for target in RELEASE_TARGETS {
            let whole = program(target);
            for length in 0..whole.len() {
                let _ = check_format(target, &whole[..length]);
            }
        }
        // A header with an offset past the end.
        let mut wild = program("x86_64-pc-windows-msvc");
        wild[0x3c..0x40].fill(0xff);
        assert!(check_format("x86_64-pc-windows-msvc", &wild).is_err());
    }
}
