//! Measures how well outdated citations are detected over the history of a repository.
//!
//! Pairs of commits are drawn. The earlier commit provides the notes: each cites one path, folder
//! or symbol of that commit and has its date. Then the later commit is checked out, and the product
//! checks the notes with the git history only. The expected result is computed from the two trees.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType},
};
use anamnesis_store::{
    citation::{self, Limits, Request},
    fs::home::Home,
    index::Index,
    journal::Journal,
    notes::Notes,
};
use chrono::DateTime;
use git2::{ObjectType, Oid, Repository, TreeWalkMode, TreeWalkResult, build::CheckoutBuilder};
use ulid::Ulid;

use crate::{Result, random::Random, run as run_command, say};

/// Limits in percent: the least share of removed things to detect, and the largest share of
/// existing things to report.
const CAUGHT: f64 = 95.0;
const FALSE: f64 = 2.0;

/// The maximum number of citations per pair, per kind, and for removed and existing things each.
const SAMPLED: usize = 100;

/// The project key of the notes.
const PROJECT: &str = "measured";

const TIMEOUT: Duration = Duration::from_secs(600);

/// Keywords that precede the name of a definition, in several languages.
const KEYWORDS: [&str; 12] = [
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "interface",
    "static",
    "struct",
    "trait",
    "type",
];

/// Measure how well notes about removed code are detected as outdated
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Repository to measure [default: this checkout]
    #[arg(long, value_name = "PATH", conflicts_with = "crate_name")]
    repository: Option<PathBuf>,
    /// Use the versions of this crate in cargo's cache instead, one commit each
    #[arg(long = "crate", value_name = "NAME")]
    crate_name: Option<String>,
    /// Number of pairs of commits
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pairs: usize,
    /// Seed of the random pairs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// The kind of a cited thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    Symbol,
}

/// Counts of removed and existing things, and of those reported as removed.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    gone: usize,
    caught: usize,
    stayed: usize,
    wrong: usize,
}

/// Runs `cargo xtask references`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let folder = tempfile::tempdir()?;
    let checkout = folder.path().join("checkout");
    if let Some(name) = &arguments.crate_name {
        repository_of_versions(name, &checkout)?;
    } else {
        let source = arguments.repository.as_deref().unwrap_or(root);
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--no-checkout"]);
        run_command(clone.arg(source).arg(&checkout))?;
    }
    let mut misses = Vec::new();
    let tallies = measure(&checkout, arguments.pairs, arguments.seed, &mut misses)?;
    for miss in misses.iter().take(20) {
        say(miss);
    }
    // A closed pipe is not an error.
    let _ = io::stdout().write_all(report(&tallies).as_bytes());
    let sum = total(&tallies);
    if percent(sum.caught, sum.gone) < CAUGHT || percent(sum.wrong, sum.stayed) > FALSE {
        return Err(format!(
            "expected at least {CAUGHT} % detected and at most {FALSE} % false reports"
        )
        .into());
    }
    Ok(())
}

/// Creates a repository from the versions of a crate in cargo's cache.
fn repository_of_versions(name: &str, checkout: &Path) -> Result {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let cache = home
        .ok_or("neither CARGO_HOME nor HOME is set")?
        .join("registry/cache");
    let mut versions = BTreeMap::new();
    for registry in fs::read_dir(&cache)? {
        for file in fs::read_dir(registry?.path())? {
            let path = file?.path();
            let stem = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            let version = stem
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'));
            let numbers: Option<Vec<u32>> = version.map(|version| {
                version
                    .split('.')
                    .filter_map(|part| part.parse().ok())
                    .collect()
            });
            if let Some(numbers) = numbers.filter(|numbers| numbers.len() == 3) {
                versions.insert(numbers, path);
            }
        }
    }
    if versions.len() < 2 {
        return Err(format!("{} has fewer than two versions of {name}", cache.display()).into());
    }
    let git = Repository::init(checkout)?;
    for (number, archive) in versions.values().enumerate() {
        for entry in fs::read_dir(checkout)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if path.is_dir() {
                fs::remove_dir_all(path)?
            } else {
                fs::remove_file(path)?
            }
        }
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(archive).arg("-C").arg(checkout);
        run_command(unpack.arg("--strip-components=1"))?;
        let day = i64::try_from(number).unwrap_or(0) * 24 * 60 * 60;
        commit_all(&git, 1_780_000_000 + day)?;
    }
    Ok(())
}

fn commit_all(git: &Repository, at: i64) -> Result {
    let mut index = git.index()?;
    index.clear()?;
    index.add_all(["*"], git2::IndexAddOption::FORCE, None)?;
    index.write()?;
    let tree = git.find_tree(index.write_tree()?)?;
    let author = git2::Signature::new("dev", "dev@example.com", &git2::Time::new(at, 0))?;
    let parent = git.head().ok().and_then(|head| head.peel_to_commit().ok());
    let parents: Vec<_> = parent.iter().collect();
    git.commit(Some("HEAD"), &author, &author, "a version", &tree, &parents)?;
    Ok(())
}

/// Draws pairs of commits and checks each.
fn measure(
    checkout: &Path,
    pairs: usize,
    seed: u64,
    misses: &mut Vec<String>,
) -> Result<BTreeMap<Kind, Tally>> {
    let git = Repository::open(checkout)?;
    let mut walk = git.revwalk()?;
    walk.simplify_first_parent()?;
    walk.push_head()?;
    let commits: Vec<Oid> = walk.collect::<std::result::Result<_, _>>()?;
    let time_of = |commit: Oid| {
        git.find_commit(commit)
            .map(|commit| commit.time().seconds())
    };
    let mut random = Random::new(seed);
    let mut tallies = BTreeMap::new();
    if commits.len() < 2 {
        return Err("the repository needs at least two commits".into());
    }
    for number in 0..pairs {
        let (one, other) = (random.index(commits.len()), random.index(commits.len()));
        // The first pair is the first and the last commit, because little changes in most other
        // pairs.
        let (later, mut base) = match number {
            0 => (0, commits.len() - 1),
            _ if one == other => continue,
            _ => (one.min(other), one.max(other)),
        };
        // A rebase creates commits with equal times. The last of them counts.
        while base > later && time_of(commits[base - 1])? <= time_of(commits[base])? {
            base -= 1;
        }
        let pair = (commits[base], commits[later]);
        check_pair(&git, checkout, pair, &mut random, &mut tallies, misses)?;
    }
    Ok(tallies)
}

fn check_pair(
    git: &Repository,
    checkout: &Path,
    (base, later): (Oid, Oid),
    random: &mut Random,
    tallies: &mut BTreeMap<Kind, Tally>,
    misses: &mut Vec<String>,
) -> Result {
    let (before, after) = (contents(git, base)?, contents(git, later)?);
    git.set_head_detached(later)?;
    git.checkout_head(Some(CheckoutBuilder::new().force().remove_untracked(true)))?;
    let store = tempfile::tempdir()?;
    let home = Home::new(store.path().join("store"));
    home.create()?;
    let notes = Notes::new(home.clone(), TIMEOUT);
    let time = git.find_commit(base)?.time().seconds();
    let written = DateTime::from_timestamp(time, 0).ok_or("a commit has an invalid time")?;
    let mut cited = BTreeMap::new();
    for kind in [Kind::File, Kind::Folder, Kind::Symbol] {
        for is_gone in [true, false] {
            let mut names: Vec<(&String, &String)> = (before.get(&kind).into_iter().flatten())
                .filter(|(name, _)| {
                    is_gone
                        != after
                            .get(&kind)
                            .is_some_and(|names| names.contains_key(*name))
                })
                .collect();
            for _ in 0..names.len().min(SAMPLED) {
                let (name, way) = names.swap_remove(random.index(names.len()));
                let id = NoteId::generate(written);
                let mut note = Note::new(id, NoteType::Semantic, written);
                note.title = format!("About {}", Ulid::generate());
                PROJECT.clone_into(&mut note.project);
                note.body = match kind {
                    Kind::File => format!("It lives in {way}."),
                    Kind::Folder => format!("All of it is in {way}."),
                    Kind::Symbol => format!("It is what `{way}` does."),
                };
                notes.create(&notes.lock()?, &note)?;
                cited.insert(id, (kind, is_gone, name.clone()));
            }
        }
    }
    let journal = Journal::open(&home, TIMEOUT)?;
    let index = Index::in_step(&home, &notes, TIMEOUT)?;
    let request = Request {
        projects: &[PROJECT.to_owned()],
        folder: checkout,
        now: DateTime::from_timestamp(git.find_commit(later)?.time().seconds(), 0)
            .unwrap_or(written),
        limits: Limits {
            notes: cited.len(),
            time: TIMEOUT,
            ..Limits::default()
        },
    };
    citation::look(&journal, &index, &notes, &request)?;
    let ids: Vec<NoteId> = cited.keys().copied().collect();
    let stale = journal.stale(&ids)?;
    for (id, (kind, is_gone, name)) in cited {
        let tally = tallies.entry(kind).or_default();
        let is_told = stale.contains_key(&id);
        if is_gone {
            tally.gone += 1;
            tally.caught += usize::from(is_told);
        } else {
            tally.stayed += 1;
            tally.wrong += usize::from(is_told);
        }
        if is_gone != is_told {
            let what = if is_told {
                "was reported and exists"
            } else {
                "was not reported"
            };
            misses.push(format!("{name} {what} (from {base} to {later})"));
        }
    }
    Ok(())
}

/// Returns the files, folders and definitions of a commit by name, each with the text by which a
/// note cites it.
fn contents(git: &Repository, commit: Oid) -> Result<BTreeMap<Kind, BTreeMap<String, String>>> {
    let mut found: BTreeMap<Kind, BTreeMap<String, String>> = BTreeMap::new();
    let mut sources = Vec::new();
    git.find_commit(commit)?
        .tree()?
        .walk(TreeWalkMode::PreOrder, |folder, entry| {
            let Ok(name) = entry.name() else {
                return TreeWalkResult::Ok;
            };
            let path = format!("{folder}{name}");
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let cited = format!("`{path}/`");
                    found.entry(Kind::Folder).or_default().insert(path, cited);
                }
                Some(ObjectType::Blob) => {
                    let is_source = Path::new(name).extension().is_some_and(|ending| {
                        ["c", "go", "h", "js", "py", "rs", "ts"]
                            .iter()
                            .any(|known| ending == *known)
                    });
                    if is_source {
                        sources.push(entry.id());
                    }
                    found
                        .entry(Kind::File)
                        .or_default()
                        .insert(path.clone(), path);
                }
                _ => {}
            }
            TreeWalkResult::Ok
        })?;
    for source in sources {
        let text = String::from_utf8_lossy(git.find_blob(source)?.content()).into_owned();
        found
            .entry(Kind::Symbol)
            .or_default()
            .extend(definitions(&text));
    }
    Ok(found)
}

/// Returns the definitions of a source file by name, each with the text by which a note cites it.
fn definitions(text: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        let words = line.split_whitespace();
        for (keyword, defined) in words.clone().zip(words.skip(1)) {
            let end = defined.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
            let name = &defined[..end.unwrap_or(defined.len())];
            let is_name = name.len() > 2 && name.starts_with(char::is_alphabetic);
            if KEYWORDS.contains(&keyword) && is_name && !KEYWORDS.contains(&name) {
                let is_function = ["def", "fn", "func", "function"].contains(&keyword);
                let cited = if is_function {
                    format!("{name}()")
                } else {
                    format!("{keyword} {name}")
                };
                names.insert(name.to_owned(), cited);
            }
        }
    }
    names
}

fn total(tallies: &BTreeMap<Kind, Tally>) -> Tally {
    tallies.values().fold(Tally::default(), |sum, tally| Tally {
        gone: sum.gone + tally.gone,
        caught: sum.caught + tally.caught,
        stayed: sum.stayed + tally.stayed,
        wrong: sum.wrong + tally.wrong,
    })
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 references")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

fn report(tallies: &BTreeMap<Kind, Tally>) -> String {
    let mut text = "cited     removed  reported         existing  reported\n".to_owned();
    let line = |name: &str, tally: &Tally| {
        format!(
            "{name:<10} {:>6} {:>7} {:>7.1} % {:>9} {:>5} {:>5.1} %\n",
            tally.gone,
            tally.caught,
            percent(tally.caught, tally.gone),
            tally.stayed,
            tally.wrong,
            percent(tally.wrong, tally.stayed),
        )
    };
    for (kind, tally) in tallies {
        let name = match kind {
            Kind::File => "files",
            Kind::Folder => "folders",
            Kind::Symbol => "symbols",
        };
        text += &line(name, tally);
    }
    text + &line("all", &total(tallies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_things_are_reported_and_existing_ones_are_not() {
        // INJ-11
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (version, at) in (0..8).zip((1_780_000_000..).step_by(3_600)) {
            let _ = fs::remove_dir_all(folder.path().join("src"));
            write(
                "src/main.rs",
                "fn main() { drain(1) }\nstruct Stays;\nfn drain_all() {}\n",
            );
            for number in version..version + 6 {
                let text =
                    format!("fn name_{number}() {{ x.drain() }}\nstruct Type{number} {{}}\n");
                write(&format!("src/part{number}/file.rs"), &text);
            }
            if version < 4 {
                write("src/drain.rs", "pub fn drain(count: u32) {}\n");
            }
            commit_all(&git, at).unwrap();
        }
        let mut misses = Vec::new();
        let tallies = measure(folder.path(), 12, 1, &mut misses).unwrap();
        assert_eq!(misses, [""; 0]);
        assert_eq!(tallies.len(), 3);
        for (kind, tally) in tallies {
            assert!(tally.gone > 5 && tally.stayed > 5, "{kind:?}: {tally:?}");
        }
    }

    #[test]
    fn definitions_are_found() {
        let text = "pub const fn open(x: u8) {}\n// fn no()\nstruct Journal<T>;\n  pub(crate) const MAX_AGE: u8 = 1;\nlet fnord = 1;";
        let names: Vec<String> = definitions(text).into_values().collect();
        assert_eq!(names, ["struct Journal", "const MAX_AGE", "open()"]);
    }
}
