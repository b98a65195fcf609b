//! Rehearses a release: archives, checksums, plugin and branch, in a folder and without a network.
//!
//! The release workflow calls the same code and scripts, so that a rehearsal shows what a tag would
//! publish.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use anamnesis_lab::output_of;

use crate::plugin::{self, Binary, Options, RELEASE_TARGETS, hex, publish};
use crate::{MANUAL, Result, at, cargo, manual, platforms, run as run_command, say, target_folder};

/// The maximum size of what an install downloads, in KiB: the branch, as git compresses it.
const MAX_CLONE_KIB: u64 = 45 * 1024;

/// The files of an archive beside the program, as dist adds them.
const BESIDE_PROGRAM: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Rehearse a release
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Make archives, plugin and branch from what `cargo xtask platforms` built, in a folder
    #[arg(long, required_unless_present = "sbom")]
    dry_run: bool,
    /// Take TARGET/anamnesis[.exe] from this folder instead
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    binaries: Option<PathBuf>,
    /// List everything that is in the program in this file: an SBOM in the format CycloneDX
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    sbom: Option<PathBuf>,
}

/// Runs `cargo xtask release`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    if let Some(file) = &arguments.sbom {
        return sbom(root, file);
    }
    rehearse(root, arguments.binaries.as_deref())
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
    let published = publish(root, &report.out, &repository, "a rehearsal")?;
    let packed = output_of(git(&repository).args(["gc", "--quiet"]))
        .and_then(|_| output_of(git(&repository).args(["count-objects", "-v"])))?;
    let size = packed
        .lines()
        .find_map(|line| line.strip_prefix("size-pack: "));
    let size: u64 = size.ok_or("git names no size of a pack")?.parse()?;
    say(&format!(
        "branch plugin: {} as {}, {size} KiB to clone; {}",
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

/// Returns a git command for a repository that reads no setting of the person.
fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.env(
        "GIT_DIR",
        std::path::absolute(repository).unwrap_or_else(|_| repository.to_path_buf()),
    )
    .env("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null"))
    .env("GIT_CONFIG_NOSYSTEM", "1");
    git
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

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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
        let first = publish(
            &root(),
            &tree(folder.path(), "0.1.0"),
            &repository,
            "a test",
        )
        .unwrap();
        let second = publish(
            &root(),
            &tree(folder.path(), "0.2.0"),
            &repository,
            "a test",
        )
        .unwrap();
        let ask = |arguments: &[&str]| output_of(git(&repository).args(arguments)).unwrap();
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
        publish(&root(), &tree, &repository, "a test").unwrap();
        let manifest = r#"{"name": "anamnesis-semantic", "version": "0.1.0"}"#;
        fs::write(tree.join(".claude-plugin/plugin.json"), manifest).unwrap();
        let model = publish(&root(), &tree, &repository, "a test").unwrap();
        assert_eq!(model.tag, "anamnesis-semantic--v0.1.0");
        let branch = output_of(git(&repository).args(["rev-parse", "semantic"])).unwrap();
        assert_eq!(branch, model.commit);
    }

    #[test]
    fn a_published_version_is_not_published_again() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        let tree = tree(folder.path(), "0.1.0");
        let first = publish(&root(), &tree, &repository, "a test").unwrap();
        let error = publish(&root(), &tree, &repository, "a test")
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("anamnesis--v0.1.0 exists"),
            "{error}"
        );
        let branch = output_of(git(&repository).args(["rev-parse", "plugin"])).unwrap();
        assert_eq!(branch, first.commit);
    }

    /// Returns the jobs of a workflow with their text.
    fn jobs(workflow: &str) -> Vec<(String, String)> {
        let path = root().join(".github/workflows").join(workflow);
        let text = fs::read_to_string(path).unwrap();
        let (_, jobs) = text.split_once("\njobs:\n").unwrap();
        let mut found: Vec<(String, String)> = Vec::new();
        for line in jobs
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
        {
            match line
                .strip_prefix("  ")
                .and_then(|line| line.strip_suffix(':'))
            {
                Some(name) if !name.starts_with(' ') => {
                    found.push((name.to_owned(), String::new()))
                }
                _ => found.last_mut().unwrap().1.push_str(&format!("{line}\n")),
            }
        }
        found
    }

    #[test]
    fn a_job_that_may_write_is_approved_and_builds_nothing() {
        let mut writing = Vec::new();
        for workflow in ["release.yml", "publish-plugin.yml", "plugin-bundle.yml"] {
            let path = root().join(".github/workflows").join(workflow);
            let text = fs::read_to_string(path).unwrap();
            let (head, _) = text.split_once("\njobs:\n").unwrap();
            assert!(!head.replace('"', "").contains(": write"), "{workflow}");
            for (name, job) in jobs(workflow) {
                let writes = job.replace('"', "").contains(": write");
                // A workflow that is called has its own environment.
                if !writes || job.contains("uses: ./.github/workflows/publish-plugin.yml") {
                    continue;
                }
                assert!(job.contains("environment: release"), "{workflow}: {name}");
                for foreign in ["cargo", "curl", "dist ", "npm", "pip", "rustup"] {
                    assert!(!job.contains(foreign), "{workflow}: {name} runs {foreign}");
                }
                // What it publishes is attested first.
                let attested = job.find("uses: actions/attest@").unwrap();
                let published = ["gh release create", "publish-tree"].map(|step| job.find(step));
                let published = published.into_iter().flatten().next();
                assert!(attested < published.unwrap(), "{workflow}: {name}");
                writing.push(name);
            }
        }
        assert_eq!(writing, ["release", "publish"]);
        // The plugin is packed and uploaded before a tool is installed, on another machine.
        let bundle = jobs("plugin-bundle.yml");
        let with = |step: &str| {
            let jobs = bundle.iter().filter(|(_, job)| job.contains(step));
            jobs.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(with("name: Pack"), ["bundle"]);
        assert_eq!(with("name: artifacts-plugin"), ["bundle"]);
        assert_eq!(with("cargo install"), ["components"]);
        assert_eq!(with("needs: bundle"), ["components"]);
    }
}
