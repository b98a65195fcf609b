//! Builds the documents as a site with mdBook, from the same pages, and checks every link in it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, at, run as run_command, say, target_folder};

/// Build the documents as a site in target/site/book and check its links
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// The pages of the root that others link to.
const ROOT_PAGES: [&str; 5] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "AGENTS.md",
];

const BOOK: &str = "[book]\ntitle = \"Anamnesis\"\nlanguage = \"en\"\nsrc = \"src\"\n\n\
    [output.html]\nno-section-label = true\n";

/// Runs `cargo xtask site`.
pub(crate) fn run(root: &Path, _: &Arguments) -> Result {
    let site = target_folder(root).join("site");
    if site.exists() {
        fs::remove_dir_all(&site).map_err(at(&site))?;
    }
    let source = site.join("src");
    for name in ROOT_PAGES
        .into_iter()
        .chain(["LICENSE-MIT", "LICENSE-APACHE"])
    {
        copy(&root.join(name), &source.join(renamed(name)))?;
    }
    copy_folder(&root.join("docs"), &source.join("docs"))?;
    write(&source.join("SUMMARY.md"), &summary(root)?)?;
    write(&site.join("book.toml"), BOOK)?;
    run_command(Command::new("mdbook").arg("build").current_dir(&site))?;
    let broken = broken_links(&site.join("book"))?;
    if !broken.is_empty() {
        return Err(format!("broken links of the site:\n{}", broken.join("\n")).into());
    }
    say(&format!("built {}", site.join("book").display()));
    Ok(())
}

/// mdBook makes `index.html` of a README, but does not change the links to it.
fn renamed(name: &str) -> String {
    name.replace("README.md", "index.md")
}

fn write(path: &Path, text: &str) -> Result {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::write(path, text).map_err(at(path))?;
    Ok(())
}

/// Copies a page with its links, or another file as it is.
fn copy(from: &Path, to: &Path) -> Result {
    let bytes = fs::read(from).map_err(at(from))?;
    match (
        from.extension().is_some_and(|ending| ending == "md"),
        String::from_utf8(bytes),
    ) {
        (true, Ok(text)) => write(to, &renamed(&text)),
        (_, Ok(text)) => write(to, &text),
        (_, Err(error)) => {
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder).map_err(at(folder))?;
            }
            fs::write(to, error.into_bytes()).map_err(at(to))?;
            Ok(())
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result {
    for entry in fs::read_dir(from).map_err(at(from))? {
        let path = entry.map_err(at(from))?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            copy_folder(&path, &to.join(name))?;
        } else {
            copy(&path, &to.join(renamed(&name)))?;
        }
    }
    Ok(())
}

/// The table of contents: the lists of `docs/README.md`, with the decisions below their page.
fn summary(root: &Path) -> Result<String> {
    let read = |path: PathBuf| fs::read_to_string(&path).map_err(at(&path));
    let mut text = "# Summary\n\n[Anamnesis](index.md)\n[All pages](docs/index.md)\n".to_owned();
    for line in read(root.join("docs/README.md"))?.lines() {
        if let Some(part) = line.strip_suffix(':').filter(|line| !line.starts_with('-')) {
            text.push_str(&format!("\n# {part}\n\n"));
        }
        let link = line
            .strip_prefix("- ")
            .and_then(|line| line.split_once(')'));
        let Some((title, page)) = link.and_then(|(link, _)| link.split_once("](")) else {
            continue;
        };
        text.push_str(&format!("- {title}](docs/{})\n", renamed(page)));
        if page == "decisions/README.md" {
            let rows = read(root.join("docs/decisions/README.md"))?;
            for row in rows.lines().filter(|row| row.starts_with("| [0")) {
                let mut cells = row.split('|').map(str::trim).skip(1);
                let (number, title) = (cells.next().unwrap_or_default(), cells.next());
                let page = number.split(['(', ')']).nth(1).unwrap_or_default();
                let title = title.unwrap_or_default();
                text.push_str(&format!("  - [{title}](docs/decisions/{page})\n"));
            }
        }
    }
    text.push_str("\n# Project\n\n");
    for (title, page) in [
        ("Contributing", "CONTRIBUTING.md"),
        ("Security", "SECURITY.md"),
        ("Changes", "CHANGELOG.md"),
        ("Agents", "AGENTS.md"),
    ] {
        text.push_str(&format!("- [{title}]({page})\n"));
    }
    Ok(text)
}

/// Returns the links of all pages that lead nowhere.
fn broken_links(book: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let mut pending = vec![book.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                let text = fs::read_to_string(&path).map_err(at(&path))?;
                pages.insert(path, text);
            }
        }
    }
    let mut broken = Vec::new();
    for (path, text) in &pages {
        // These two are made of all pages, or have no place of their own.
        if path.ends_with("print.html") || path.ends_with("404.html") {
            continue;
        }
        for link in attributes(text) {
            if !resolves(path, link, &pages) {
                let page = path.strip_prefix(book).unwrap_or(path);
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    if pages.len() < 20 {
        return Err(format!("the site has only {} pages", pages.len()).into());
    }
    Ok(broken)
}

/// The values of `href` and `src`.
fn attributes(text: &str) -> impl Iterator<Item = &str> {
    ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|name| text.split(name).skip(1))
        .filter_map(|rest| rest.split('"').next())
}

fn resolves(page: &Path, link: &str, pages: &BTreeMap<PathBuf, String>) -> bool {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        _ => page.with_file_name("").join(path),
    };
    // Without links and `..`, as in the keys.
    let Ok(target) = dunce::canonicalize(target) else {
        return false;
    };
    let found = pages
        .iter()
        .find(|(page, _)| dunce::canonicalize(page).is_ok_and(|page| page == target));
    match found {
        Some((_, text)) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nothing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("a.html");
        let text = "<h1 id=\"x\">A</h1><a href=\"#x\"><a href=\"#y\"><a href=\"b.html\"><a href=\"https://c\">";
        fs::write(&page, text).unwrap();
        let pages = BTreeMap::from([(page.clone(), text.to_owned())]);
        let broken = attributes(text).filter(|link| !resolves(&page, link, &pages));
        assert_eq!(broken.collect::<Vec<_>>(), ["#y", "b.html"]);
    }
}
