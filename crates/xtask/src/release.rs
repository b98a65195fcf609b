//! Puts an assembled plugin on the branch that installs come from, and rehearses a release: archives,
//! checksums, plugin and branch, in a folder and without a network.
//!
//! The release workflow calls the same code, so that a rehearsal shows what a tag would publish.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::plugin::{self, Binary, Options, RELEASE_TARGETS, hex};
use crate::{MANUAL, Result, at, cargo, manual, platforms, run as run_command, say, target_folder};

/// The branch that the marketplace entry names. It has no sources.
const BRANCH: &str = "plugin";

/// The plugin with the embedding model, and its branch.
const SEMANTIC: (&str, &str) = ("anamnesis-semantic", "semantic");

/// The maximum size of what an install downloads, in KiB: the branch, as git compresses it.
const MAX_CLONE_KIB: u64 = 45 * 1024;

/// The files of an archive beside the program, as dist adds them.
const BESIDE_PROGRAM: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Rehearse a release, or publish an assembled plugin on its branch
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Make archives, plugin and branch from what `cargo xtask platforms` built, in a folder
    #[arg(long, required_unless_present_any = ["publish", "sbom"])]
    dry_run: bool,
    /// Take TARGET/anamnesis[.exe] from this folder instead
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    binaries: Option<PathBuf>,
    /// Commit this assembled plugin on its branch (`plugin` or `semantic`), and tag it
    #[arg(
        long,
        value_name = "DIR",
        requires = "repository",
        conflicts_with = "dry_run"
    )]
    publish: Option<PathBuf>,
    /// List everything that is in the program in this file: an SBOM in the format CycloneDX
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "publish"])]
    sbom: Option<PathBuf>,
    /// The git folder of the repository with the branch; nothing is pushed
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
    /// What the plugin was made from, for the commit
    #[arg(long, value_name = "TEXT", default_value = "a checkout")]
    source: String,
}

/// Runs `cargo xtask release`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    if let Some(file) = &arguments.sbom {
        return sbom(root, file);
    }
    match (&arguments.publish, &arguments.repository) {
        (Some(tree), Some(repository)) => {
            let published = publish(tree, repository, &arguments.source)?;
            say(&format!("{} as {}", published.commit, published.tag));
            Ok(())
        }
        _ => rehearse(root, arguments.binaries.as_deref()),
    }
}

/// Makes what a tag would publish, in `target/release-rehearsal`.
fn rehearse(root: &Path, given: Option<&Path>) -> Result {
    let out = target_folder(root).join("release-rehearsal");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(at(&out))?;
    }
    let archives = out.join("archives");
    fs::create_dir_all(&archives).map_err(at(&archives))?;
    let binaries = binaries(root, given);
    for target in RELEASE_TARGETS {
        if !binaries.iter().any(|binary| binary.target == target) {
            say(&format!("skipped: {target} (no program was built for it)"));
        }
    }
    manual(root)?;
    let bill = out.join("anamnesis.cdx.json");
    match sbom(root, &bill) {
        Ok(()) => say(&format!("components: {}", bill.display())),
        Err(error) => say(&format!("skipped: the list of components ({error})")),
    }
    let mut sums = String::new();
    for binary in &binaries {
        let archive = archive(root, &archives, binary)?;
        let content = fs::read(&archive).map_err(at(&archive))?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(sums, "{}  {name}", hex(&Sha256::digest(&content)));
        say(&format!("{name}: {} bytes", content.len()));
    }
    let list = archives.join("sha256.sum");
    fs::write(&list, sums).map_err(at(&list))?;

    let report = plugin::assemble(&Options {
        root: root.to_path_buf(),
        binaries,
        out: out.join("plugin"),
    })?;
    say(&format!(
        "plugin: {} files, {} bytes",
        report.files, report.bytes
    ));
    let repository = out.join("plugin.git");
    run_command(git(&repository).args(["init", "--quiet", "--bare", "--initial-branch=main"]))?;
    let published = publish(&report.out, &repository, "a rehearsal")?;
    let packed = git_output(git(&repository).args(["gc", "--quiet"]))
        .and_then(|_| git_output(git(&repository).args(["count-objects", "-v"])))?;
    let size = packed
        .lines()
        .find_map(|line| line.strip_prefix("size-pack: "));
    let size: u64 = size.ok_or("git names no size of a pack")?.parse()?;
    say(&format!(
        "branch {BRANCH}: {} as {}, {size} KiB to clone; {}",
        published.commit,
        published.tag,
        repository.display()
    ));
    if size > MAX_CLONE_KIB {
        return Err(format!(
            "the plugin has {size} KiB to clone: expected at most {MAX_CLONE_KIB}"
        )
        .into());
    }
    Ok(())
}

/// Writes the list of components with `cargo cyclonedx`, which writes a file beside each manifest.
fn sbom(root: &Path, file: &Path) -> Result {
    let mut list = cargo(root);
    list.args(["cyclonedx", "--format", "json", "--spec-version", "1.5"]);
    list.args([
        "--describe",
        "binaries",
        "--target",
        "all",
        "--no-build-deps",
    ]);
    run_command(&mut list)?;
    let [ours, tasks] = ["cli/anamnesis", "xtask/anamnesis-xtask"]
        .map(|name| root.join("crates").join(format!("{name}_bin.cdx.json")));
    fs::remove_file(&tasks).map_err(at(&tasks))?;
    fs::copy(&ours, file).map_err(at(file))?;
    fs::remove_file(&ours).map_err(at(&ours))?;
    Ok(())
}

/// Returns the programs that exist, by their target of a release.
fn binaries(root: &Path, given: Option<&Path>) -> Vec<Binary> {
    if let Some(folder) = given {
        let mut binaries = plugin::release_binaries(folder);
        binaries.retain(|binary| binary.path.is_file());
        return binaries;
    }
    let built = platforms::built(root).into_iter();
    built
        .map(|(target, path)| Binary {
            target: target.to_owned(),
            path,
        })
        .collect()
}

/// Makes the archive of a target as dist does. Returns its path.
fn archive(root: &Path, out: &Path, binary: &Binary) -> Result<PathBuf> {
    let name = format!("anamnesis-cli-{}", binary.target);
    let folder = tempfile::tempdir()?;
    let content = folder.path().join(&name);
    fs::create_dir(&content).map_err(at(&content))?;
    let program = content.join(binary.path.file_name().unwrap_or_default());
    fs::copy(&binary.path, &program).map_err(at(&binary.path))?;
    for file in BESIDE_PROGRAM {
        fs::copy(root.join(file), content.join(file)).map_err(at(&root.join(file)))?;
    }
    for folder in ["man", "completions"] {
        let folder = root.join(MANUAL).join(folder);
        run_command(Command::new("cp").arg("-R").arg(folder).arg(&content))?;
    }
    // Names, owners and times that do not depend on this machine.
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--mtime=@0",
        "--use-compress-program=gzip -n",
    ]);
    tar.arg("--create").arg("--file").arg(&archive);
    run_command(tar.arg("--directory").arg(folder.path()).arg(&name))?;
    Ok(archive)
}

/// A version on the branch.
pub(crate) struct Published {
    pub(crate) commit: String,
    pub(crate) tag: String,
}

/// Commits an assembled plugin on the branch of a repository, after its earlier versions, and tags it.
///
/// # Errors
/// Returns an error if the version was published before: an equal version is an equal plugin to the
/// client, and a tag never moves.
pub(crate) fn publish(tree: &Path, repository: &Path, source: &str) -> Result<Published> {
    let tree = dunce::canonicalize(tree).map_err(at(tree))?;
    let manifest = tree.join(".claude-plugin/plugin.json");
    let manifest: Value = serde_json::from_slice(&fs::read(&manifest).map_err(at(&manifest))?)?;
    let version = manifest["version"]
        .as_str()
        .ok_or("plugin.json has no version")?;
    let (semantic, semantic_branch) = SEMANTIC;
    let (name, branch) = if manifest["name"] == semantic {
        (semantic, semantic_branch)
    } else {
        ("anamnesis", BRANCH)
    };
    let tag = format!("{name}--v{version}");
    let scratch = tempfile::tempdir()?;
    let git = || {
        let mut git = git(repository);
        git.env("GIT_WORK_TREE", &tree)
            .env("GIT_INDEX_FILE", scratch.path().join("index"))
            .current_dir(&tree);
        git
    };
    let known =
        |name: &str| git_output(git().args(["rev-parse", "--quiet", "--verify", name])).ok();
    if known(&format!("refs/tags/{tag}")).is_some() {
        return Err(format!("{tag} exists: expected a new version in plugin.json").into());
    }
    let branch = format!("refs/heads/{branch}");
    let earlier = known(&branch);
    git_output(git().args(["add", "--all", "--force", "."]))?;
    let content = git_output(git().arg("write-tree"))?;
    let mut commit = git();
    commit.args([
        "commit-tree",
        &content,
        "-m",
        &format!("Anamnesis {version}"),
    ]);
    commit.args(["-m", &format!("Assembled from {source}.")]);
    if let Some(earlier) = &earlier {
        commit.args(["-p", earlier]);
    }
    let commit = git_output(&mut commit)?;
    git_output(git().args([
        "update-ref",
        &branch,
        &commit,
        earlier.as_deref().unwrap_or(""),
    ]))?;
    git_output(git().args(["tag", &tag, &commit]))?;
    Ok(Published { commit, tag })
}

/// Returns a git command for a repository, with a fixed author. It reads no setting of the person, such
/// as one that signs commits or changes line ends.
fn git(repository: &Path) -> Command {
    let name = "github-actions[bot]";
    let address = "41898282+github-actions[bot]@users.noreply.github.com";
    let mut git = Command::new("git");
    git.env(
        "GIT_DIR",
        std::path::absolute(repository).unwrap_or_else(|_| repository.to_path_buf()),
    )
    .env("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null"))
    .env("GIT_CONFIG_NOSYSTEM", "1")
    .envs([("GIT_AUTHOR_NAME", name), ("GIT_AUTHOR_EMAIL", address)])
    .envs([
        ("GIT_COMMITTER_NAME", name),
        ("GIT_COMMITTER_EMAIL", address),
    ]);
    git
}

fn git_output(git: &mut Command) -> Result<String> {
    let output = git.output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    } else {
        Err(format!("{git:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an assembled plugin with this version.
    fn tree(folder: &Path, version: &str) -> PathBuf {
        let tree = folder.join(format!("tree-{version}"));
        let write = |name: &str, text: &str| {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            ".claude-plugin/plugin.json",
            &format!(r#"{{"name": "anamnesis", "version": "{version}"}}"#),
        );
        // The branch has what a person's settings would leave out.
        write(".gitignore", "bin\n");
        write("bin/anamnesis", "#!/bin/sh\r\n");
        tree
    }

    fn repository(folder: &Path) -> PathBuf {
        let repository = folder.join("plugin.git");
        run_command(git(&repository).args(["init", "--quiet", "--bare"])).unwrap();
        repository
    }

    #[test]
    fn versions_follow_each_other_on_the_branch_and_stay_reachable_by_their_tags() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        let first = publish(&tree(folder.path(), "0.1.0"), &repository, "a test").unwrap();
        let second = publish(&tree(folder.path(), "0.2.0"), &repository, "a test").unwrap();
        let ask = |arguments: &[&str]| git_output(git(&repository).args(arguments)).unwrap();
        assert_eq!(
            ask(&["rev-parse", "plugin", "plugin~1"]),
            format!("{}\n{}", second.commit, first.commit)
        );
        assert_eq!(ask(&["rev-parse", "anamnesis--v0.1.0"]), first.commit);
        assert_eq!(
            ask(&["show", "--no-patch", "--format=%b", "plugin"]),
            "Assembled from a test."
        );
        let files = ask(&["ls-tree", "-r", "--name-only", "plugin"]);
        assert_eq!(
            files,
            ".claude-plugin/plugin.json\n.gitignore\nbin/anamnesis"
        );
        let launcher = git(&repository)
            .args(["show", "plugin:bin/anamnesis"])
            .output()
            .unwrap();
        assert_eq!(launcher.stdout, b"#!/bin/sh\r\n");
    }

    #[test]
    fn the_model_has_a_branch_and_versions_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        let tree = tree(folder.path(), "0.1.0");
        publish(&tree, &repository, "a test").unwrap();
        let manifest = r#"{"name": "anamnesis-semantic", "version": "0.1.0"}"#;
        fs::write(tree.join(".claude-plugin/plugin.json"), manifest).unwrap();
        let model = publish(&tree, &repository, "a test").unwrap();
        assert_eq!(model.tag, "anamnesis-semantic--v0.1.0");
        let branch = git_output(git(&repository).args(["rev-parse", "semantic"])).unwrap();
        assert_eq!(branch, model.commit);
    }

    #[test]
    fn a_published_version_is_not_published_again() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        let tree = tree(folder.path(), "0.1.0");
        let first = publish(&tree, &repository, "a test").unwrap();
        let error = publish(&tree, &repository, "a test").err().unwrap();
        assert!(
            error.to_string().contains("anamnesis--v0.1.0 exists"),
            "{error}"
        );
        let branch = git_output(git(&repository).args(["rev-parse", "plugin"])).unwrap();
        assert_eq!(branch, first.commit);
    }
}
