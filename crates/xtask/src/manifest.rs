//! Sets the repository's address, and tests that all copies of version and address are equal.
//!
//! Both are defined in the workspace's `Cargo.toml` and compiled into this program. Formats and
//! documents that need a copy (the plugin's manifests, `*.md`) are compared by the tests below.
//! Everything else asks cargo.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, at, say};

/// `https://github.com/OWNER/NAME`.
const ADDRESS: &str = env!("CARGO_PKG_REPOSITORY");

/// The prefix of every address: marketplace and release workflow need GitHub.
const HOST: &str = "https://github.com/";

/// The files that contain the address, in addition to the documents (`*.md`).
const MANIFESTS: [&str; 5] = [
    "Cargo.toml",
    ".claude-plugin/plugin.json",
    ".claude-plugin/marketplace.json",
    ".codex-plugin/plugin.json",
    "semantic/.claude-plugin/plugin.json",
];

/// Folders that are not searched.
const FOREIGN: [&str; 4] = [".git", "target", "node_modules", "corpus"];

/// Set the repository's address in every file that contains it
#[derive(clap::Args)]
pub(crate) struct PublishArguments {
    /// The repository on GitHub
    #[arg(value_name = "OWNER/REPO", value_parser = parse_repository)]
    repository: String,
}

/// Runs `cargo xtask publish-as`.
pub(crate) fn publish_as(root: &Path, arguments: &PublishArguments) -> Result {
    let current = ADDRESS
        .strip_prefix(HOST)
        .ok_or("the address in Cargo.toml is not GitHub's")?;
    let changed = rename(root, current, &arguments.repository)?;
    for path in &changed {
        say(&format!("{}: {}", path.display(), arguments.repository));
    }
    say(&format!("{} files changed", changed.len()));
    Ok(())
}

/// Accepts names of repositories and owners that GitHub accepts.
fn parse_repository(text: &str) -> std::result::Result<String, String> {
    let (owner, name) = text.split_once('/').ok_or("expected OWNER/REPO")?;
    let plain = |text: &str, more: &str| {
        text.chars()
            .all(|it| it.is_ascii_alphanumeric() || more.contains(it))
    };
    let owner_is_good = (1..=39).contains(&owner.len())
        && plain(owner, "-")
        && !owner.starts_with('-')
        && !owner.ends_with('-')
        && !owner.contains("--");
    if !owner_is_good {
        return Err("an owner has up to 39 letters, digits and single hyphens".to_owned());
    }
    let name_is_good = (1..=100).contains(&name.len())
        && plain(name, "-_.")
        && !name.starts_with('.')
        && !name.to_ascii_lowercase().ends_with(".git");
    if !name_is_good {
        return Err("a repository has up to 100 letters, digits, `-`, `_` and `.`".to_owned());
    }
    Ok(text.to_owned())
}

/// Replaces the repository `from` by `to`, and returns the changed files.
fn rename(root: &Path, from: &str, to: &str) -> Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    for path in files(root)? {
        if !may_contain_address(&path) {
            continue;
        }
        let file = root.join(&path);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        let renamed = replace(&text, from, to);
        if renamed != text {
            fs::write(&file, renamed).map_err(at(&file))?;
            changed.push(path);
        }
    }
    Ok(changed)
}

/// Returns whether a file, relative to the root, may contain the address.
fn may_contain_address(path: &Path) -> bool {
    MANIFESTS.iter().any(|manifest| path == Path::new(manifest))
        || path.extension().is_some_and(|extension| extension == "md")
}

/// Replaces a repository's name, but not within a longer name.
fn replace(text: &str, from: &str, to: &str) -> String {
    let part_of_a_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        replaced.push_str(before);
        let alone = !before.ends_with(part_of_a_name) && !after.starts_with(part_of_a_name);
        replaced.push_str(if alone { to } else { from });
        rest = after;
    }
    replaced + rest
}

/// Returns all files of the checkout, relative to its root, sorted.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(at(&path))? {
            let entry = entry.map_err(at(&path))?;
            let kind = entry.file_type().map_err(at(&path))?;
            let name = folder.join(entry.file_name());
            if kind.is_file() {
                files.push(name);
            } else if kind.is_dir() && !FOREIGN.iter().any(|foreign| entry.file_name() == *foreign)
            {
                folders.push(name);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::plugin::RELEASE_TARGETS;

    const VERSION: &str = env!("CARGO_PKG_VERSION");

    fn repository() -> &'static str {
        ADDRESS.strip_prefix(HOST).unwrap()
    }

    fn text(name: &str) -> String {
        fs::read_to_string(crate::root().join(name)).unwrap()
    }

    fn json(name: &str) -> Value {
        serde_json::from_str(&text(name)).unwrap()
    }

    #[test]
    fn the_address_is_valid_for_publish_as() {
        assert_eq!(parse_repository(repository()).as_deref(), Ok(repository()));
    }

    #[test]
    fn the_manifests_agree_with_the_workspace() {
        let plugin = ".claude-plugin/plugin.json";
        let marketplace = ".claude-plugin/marketplace.json";
        let codex = ".codex-plugin/plugin.json";
        let gemini = "hosts/gemini/gemini-extension.json";
        let cloned = &format!("{ADDRESS}.git");
        let places = [
            (codex, "/version", VERSION),
            (codex, "/repository", ADDRESS),
            (codex, "/homepage", ADDRESS),
            (codex, "/author/url", ADDRESS),
            (codex, "/license", env!("CARGO_PKG_LICENSE")),
            (gemini, "/version", VERSION),
            (plugin, "/version", VERSION),
            (plugin, "/repository", ADDRESS),
            (plugin, "/homepage", ADDRESS),
            (plugin, "/author/url", ADDRESS),
            (plugin, "/license", env!("CARGO_PKG_LICENSE")),
            (marketplace, "/owner/url", ADDRESS),
            // Not the source `github`, which the client clones by ssh: that needs a key at GitHub.
            (marketplace, "/plugins/0/source/source", "url"),
            (marketplace, "/plugins/0/source/url", cloned),
        ];
        for (file, pointer, expected) in places {
            assert_eq!(
                json(file).pointer(pointer),
                Some(&Value::from(expected)),
                "{file} {pointer}"
            );
        }
        // The client silently prefers plugin.json's version, so a second copy could only be wrong.
        assert_eq!(json(marketplace).pointer("/plugins/0/version"), None);
        assert_eq!(
            json(marketplace).pointer("/plugins/0/name"),
            json(plugin).pointer("/name")
        );
    }

    #[test]
    fn the_plugins_remote_option_is_optional() {
        let plugin = json(".claude-plugin/plugin.json");
        let options = plugin["userConfig"].as_object().unwrap();
        assert_eq!(options.keys().collect::<Vec<_>>(), ["remote"]);
        let remote = options["remote"].as_object().unwrap();
        // The client refuses a manifest with an unknown field.
        assert_eq!(
            remote.keys().collect::<Vec<_>>(),
            ["type", "title", "description"]
        );
        // A hook whose arguments name an unset option does not run. The server also finds answers
        // in the settings, into which the client copies them.
        for file in ["hooks/hooks.json", ".mcp.json"] {
            assert!(!text(file).contains("user_config"), "{file}");
        }
    }

    #[test]
    fn every_crate_has_the_version_of_the_workspace() {
        let lock = text("Cargo.lock");
        let ours: Vec<_> = lock
            .split("[[package]]")
            .filter(|package| package.contains("\nname = \"anamnesis-"))
            .collect();
        assert!(ours.len() >= 6, "{} crates in Cargo.lock", ours.len());
        for package in ours {
            assert!(
                package.contains(&format!("\nversion = \"{VERSION}\"\n")),
                "{package}"
            );
        }
    }

    #[test]
    fn the_documents_name_this_repository() {
        let root = crate::root();
        let (_, name) = repository().split_once('/').unwrap();
        for path in files(&root).unwrap() {
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(root.join(&path)).unwrap();
            let links = text
                .split(HOST)
                .skip(1)
                .filter(|it| it.split('/').nth(1).is_some_and(|it| it.starts_with(name)));
            let installs = text.split("--marketplace ").skip(1);
            for mention in links.chain(installs) {
                let mention = mention.lines().next().unwrap();
                assert!(
                    mention.starts_with(repository()),
                    "{}: {mention}",
                    path.display()
                );
            }
        }
        assert!(text("README.md").contains(&format!("--marketplace {}", repository())));
    }

    #[test]
    fn no_other_file_names_the_repository() {
        let root = crate::root();
        for path in files(&root).unwrap() {
            if !may_contain_address(&path) {
                let content = fs::read(root.join(&path)).unwrap();
                let content = String::from_utf8_lossy(&content);
                let why = "ask env!(\"CARGO_PKG_REPOSITORY\") instead";
                assert!(!content.contains(repository()), "{}: {why}", path.display());
            }
        }
    }

    #[test]
    fn release_targets_equal_plugin_targets() {
        let workspace = text("dist-workspace.toml");
        let line = workspace
            .lines()
            .find_map(|line| line.strip_prefix("targets = "))
            .unwrap();
        let targets: Vec<String> = serde_json::from_str(line).unwrap();
        assert_eq!(targets, RELEASE_TARGETS);
    }

    #[test]
    fn the_changelog_has_an_unreleased_section() {
        assert!(text("CHANGELOG.md").contains("\n## Unreleased\n"));
    }

    #[test]
    fn publish_as_changes_every_copy_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        write(
            "Cargo.toml",
            "repository = \"https://github.com/old/name\"\n",
        );
        write(
            ".claude-plugin/plugin.json",
            "{\"repository\": \"https://github.com/old/name\"}",
        );
        write(
            "docs/guide.md",
            "see old/name.git, old/name-tools, bold/name and old/name",
        );
        write("README.md", "nothing of the kind");
        write("crates/cli/src/main.rs", "// old/name");
        write("target/README.md", "old/name");

        let changed = rename(root, "old/name", "new-owner/new.name").unwrap();

        let expected = [".claude-plugin/plugin.json", "Cargo.toml", "docs/guide.md"];
        assert_eq!(changed, expected.map(PathBuf::from));
        assert_eq!(
            read("Cargo.toml"),
            "repository = \"https://github.com/new-owner/new.name\"\n"
        );
        assert_eq!(
            read("docs/guide.md"),
            "see new-owner/new.name.git, old/name-tools, bold/name and new-owner/new.name"
        );
        assert_eq!(read("crates/cli/src/main.rs"), "// old/name");
        assert_eq!(read("target/README.md"), "old/name");
    }

    #[test]
    fn invalid_repository_names_are_refused() {
        let good = ["someone/memory", "a/b", "a-b/c.d_e-f", "A1/x"];
        let bad = [
            "",
            "name",
            "/name",
            "owner/",
            "a/b/c",
            "-a/b",
            "a-/b",
            "a--b/c",
            "a b/c",
            "a/b c",
            "a/..",
            "a/.",
            "a/b.git",
            "a/\"b",
            "a/b\n",
            "ö/b",
            "https://github.com/a/b",
            "a_b/c",
        ];
        for text in good {
            assert_eq!(parse_repository(text).as_deref(), Ok(text));
        }
        for text in bad {
            assert!(parse_repository(text).is_err(), "{text:?}");
        }
        assert!(parse_repository(&format!("{}/b", "a".repeat(40))).is_err());
        assert!(parse_repository(&format!("a/{}", "b".repeat(101))).is_err());
    }
}
