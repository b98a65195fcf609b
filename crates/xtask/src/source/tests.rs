use super::*;

/// Ways to wait without being woken, or to be reached over a network.
const FORBIDDEN: [&str; 12] = [
    "sleep(",
    "spin_loop",
    "yield_now",
    "park_timeout",
    "try_recv",
    "try_wait",
    "poll(",
    "std::net",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "os::unix::net",
];

/// Files that may use one of them, and why.
const ALLOWED: [(&str, &str); 7] = [
    // The viewer listens where a person started it, watches the store while a page is open, and ends
    // after the last one.
    ("web/src/server.rs", "TcpListener"),
    ("web/src/server.rs", "std::net"),
    ("web/src/server.rs", "sleep("),
    ("web/src/events.rs", "sleep("),
    // Two machines that one remote refused at the same moment must not retry at the same moment.
    ("sync/src/git_backend.rs", "sleep("),
    // git tells nobody when it removes a lock.
    ("sync/src/apply.rs", "sleep("),
    // On Windows, a file that another process has open can be moved a moment later.
    ("store/src/fs/file.rs", "sleep("),
];

fn forbidden(file: &SourceFile) -> Vec<(&'static str, usize)> {
    file.product_lines()
        .flat_map(|(number, line)| {
            let words = FORBIDDEN
                .into_iter()
                .filter(move |word| line.contains(word));
            words.map(move |word| (word, number))
        })
        .collect()
}

/// A crate in a temporary folder, from its files' names and texts.
fn sample(files: &[(&str, &str)]) -> Crate {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join("crates/sample/src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Crate::read(root.path(), "sample").unwrap()
}

#[test]
fn test_items_comments_and_blank_lines_are_not_product_lines() {
    let text = "//! Doc.\nuse std::fs;\n\n#[cfg(test)]\nmod tests;\n\n/// Doc.\nfn a() {\n    // why\n    b();\n}\n#[cfg(all(test, unix))]\nfn c() {\n}\nfn d() {}\n";
    let read = sample(&[("lib.rs", text)]);
    let numbers: Vec<usize> = read.files[0].product_lines().map(|(n, _)| n).collect();
    assert_eq!(numbers, [2, 8, 10, 11, 15]);
    let functions: Vec<(&str, usize)> = read.files[0]
        .functions
        .iter()
        .map(|function| (function.name.as_str(), function.lines))
        .collect();
    assert_eq!(functions, [("a", 3), ("d", 1)]);
}

#[test]
fn an_import_cycle_between_folders_is_found() {
    let read = sample(&[
        (
            "lib.rs",
            "mod a;\nmod b;\nmod c;\npub use b::inner::Thing;\n",
        ),
        ("a.rs", "fn f() { crate::c::g(); }\n"),
        ("b/mod.rs", "pub mod inner;\n"),
        (
            "b/inner.rs",
            "pub struct Thing;\nfn h() { vec![crate::a::f()]; }\n",
        ),
        ("c.rs", "use crate::Thing;\nfn g() -> Thing {}\n"),
    ]);
    let cycles = read.cycles();
    let names: Vec<Vec<&str>> = cycles
        .iter()
        .map(|files| {
            let stems = files.iter().map(|file| file.path.file_stem().unwrap());
            let mut names: Vec<&str> = stems.map(|stem| stem.to_str().unwrap()).collect();
            names.sort_unstable();
            names
        })
        .collect();
    assert_eq!(names, [["a", "c", "inner"]]);
}

#[test]
fn files_of_one_folder_may_name_each_other() {
    let read = sample(&[
        ("lib.rs", "mod a;\n"),
        ("a.rs", "mod b;\nfn f() { b::g(); }\n"),
        ("a/b.rs", "use super::f;\n#[cfg(test)]\nuse crate::x::y;\n"),
    ]);
    assert_eq!(read.imports().len(), 2);
    assert!(read.cycles().is_empty());
}

#[test]
fn a_product_build_neither_sleeps_nor_polls_nor_opens_a_socket() {
    let root = crate::root();
    for name in PRODUCT {
        for file in Crate::read(&root, name).unwrap().files {
            let found: Vec<_> = forbidden(&file)
                .into_iter()
                .filter(|(word, _)| {
                    let is_allowed = |(path, allowed): &(&str, &str)| {
                        file.path.ends_with(path) && allowed == word
                    };
                    !ALLOWED.iter().any(is_allowed)
                })
                .collect();
            assert!(found.is_empty(), "{}: {found:?}", file.path.display());
        }
    }
}

#[test]
fn a_sleep_after_the_first_test_item_is_found() {
    let text =
        "// never sleep(1)\n#[cfg(test)]\nfn t() { sleep(1); }\nfn f() { thread::sleep(1); }\n";
    let read = sample(&[("lib.rs", text)]);
    assert_eq!(forbidden(&read.files[0]), [("sleep(", 4)]);
}

#[test]
fn no_crate_has_an_import_cycle_between_folders() {
    let root = crate::root();
    for name in PRODUCT {
        let read = Crate::read(&root, name).unwrap();
        let cycles = read.cycles();
        let shown: Vec<Vec<_>> = cycles
            .iter()
            .map(|files| files.iter().map(|file| file.path.display()).collect())
            .collect();
        assert!(shown.is_empty(), "{name}: {shown:#?}");
    }
}

/// Calls that wait for time, or compare it.
const TIMED: [&str; 5] = [
    "sleep",
    "elapsed",
    "duration_since",
    "yield_now",
    "spin_loop",
];

/// Returns every Rust file of the workspace, with its path from the root and its text.
fn rust_files() -> Vec<(String, String)> {
    let files = anamnesis_testkit::rust_files(&crate::root()).unwrap();
    assert!(files.len() > 300, "{} files", files.len());
    files
}

/// Collects the calls of [`TIMED`], with their lines. Texts and comments hold no tokens.
fn timed_calls(tokens: TokenStream, found: &mut Vec<(&'static str, usize)>) {
    let mut named = None;
    for token in tokens {
        let previous = named.take();
        match token {
            TokenTree::Group(group) => {
                if group.delimiter() == proc_macro2::Delimiter::Parenthesis {
                    let line = group.span_open().start().line;
                    found.extend(previous.map(|name| (name, line)));
                }
                timed_calls(group.stream(), found);
            }
            TokenTree::Ident(name) => named = TIMED.into_iter().find(|timed| name == timed),
            _ => {}
        }
    }
}

/// Returns the calls in the tests of a file that wait for time or compare it.
fn timed_tests(name: &str, text: &str) -> Vec<String> {
    let mut reader = Reader::default();
    reader.visit_file(&syn::parse_file(text).unwrap());
    let mut found = Vec::new();
    timed_calls(text.parse().unwrap(), &mut found);
    let is_test_file = name
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs");
    let is_test = |line| is_test_file || reader.tests.iter().any(|range| range.contains(&line));
    let found = found.into_iter().filter(|(_, line)| is_test(*line));
    found
        .map(|(call, line)| format!("{name}:{line}: {call}"))
        .collect()
}

/// A test waits with `wait_for` of the test kit, which has a time limit, and asserts what was done.
#[test]
fn tests_neither_sleep_nor_compare_times() {
    let files = rust_files();
    let found: Vec<_> = files
        .iter()
        .flat_map(|(name, text)| timed_tests(name, text))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_sleep_and_a_comparison_of_times_are_found_in_tests_only() {
    let text = "fn a() { sleep(1); }\n#[cfg(test)]\nmod tests {\n    // sleep(1)\n    \
                fn b() { thread::sleep(1); run(\"sleep (1)\"); }\n    \
                fn c() { assert!(begun.elapsed() < LIMIT); }\n}\n";
    let expected = ["a.rs:5: sleep", "a.rs:6: elapsed"];
    assert_eq!(timed_tests("a.rs", text), expected);
    assert_eq!(timed_tests("crates/a/tests/b.rs", text).len(), 3);
}

/// Names of standards and licences that are written as the id of a rule is.
const STANDARDS: [&str; 9] = [
    "AES", "BSL", "CVE", "GPL", "ISO", "MPL", "RFC", "SHA", "UTF",
];

/// Returns the ids of rules in a text: capitals, a hyphen, up to three digits, as in `GIT-14`.
fn rule_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
    words.filter(|word| {
        word.split_once('-').is_some_and(|(area, number)| {
            area.len() >= 2
                && area.bytes().all(|byte| byte.is_ascii_uppercase())
                && !STANDARDS.contains(&area)
                && (1..=3).contains(&number.len())
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

/// A reader can look up an id only if a document has it. Elsewhere the comment says the rule.
#[test]
fn sources_cite_ids_of_documents_only() {
    let root = crate::root();
    let mut documented = BTreeSet::new();
    for folder in ["", "docs", "docs/reference", "docs/decisions"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            // The page on style shows how not to cite.
            if path.extension().is_some_and(|it| it == "md") && !path.ends_with("docs/style.md") {
                let text = fs::read_to_string(path).unwrap();
                documented.extend(rule_ids(&text).map(str::to_owned));
            }
        }
    }
    assert!(documented.len() > 50, "{documented:?}");
    let mut unknown = Vec::new();
    for (name, text) in rust_files() {
        for (line, number) in text.lines().zip(1..) {
            let ids = rule_ids(line).filter(|id| !documented.contains(*id));
            unknown.extend(ids.map(|id| format!("{name}:{number}: {id}")));
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn ids_of_rules_are_told_from_names_of_standards() {
    let rule = concat!("PR", "-9");
    let text =
        format!("// UTF-8, SHA-256: see GIT-14, {rule}, AGE-SECRET-KEY-1 and MINGW64_NT-10.0");
    let ids: Vec<_> = rule_ids(&text).collect();
    assert_eq!(ids, ["GIT-14", rule]);
}

/// The most lines of a test. A longer one is split, or its rows become a table.
const MAX_TEST: usize = 120;

/// Collects the tests of a file that are too long, with their lines.
#[derive(Default)]
struct LongTests(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for LongTests {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = |it: &syn::Attribute| {
            let path = it.path().segments.last();
            path.is_some_and(|segment| segment.ident == "test")
        };
        let lines = 1 + lines_of(&function.block).end() - lines_of(&function.sig).start();
        if lines > MAX_TEST && function.attrs.iter().any(is_test) {
            self.0.push((function.sig.ident.to_string(), lines));
        }
    }
}

fn long_tests(text: &str) -> Vec<(String, usize)> {
    let mut tests = LongTests::default();
    tests.visit_file(&syn::parse_file(text).unwrap());
    tests.0
}

#[test]
fn tests_are_short() {
    let found: Vec<_> = rust_files()
        .into_iter()
        .map(|(name, text)| (name, long_tests(&text)))
        .filter(|(_, tests)| !tests.is_empty())
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_long_test_is_found() {
    let lines = "    a();\n".repeat(MAX_TEST - 2);
    let text = |more| {
        format!("mod m {{\n#[test]\nfn long() {{\n{lines}{more}}}\n}}\nfn f() {{\n{lines}\n\n}}\n")
    };
    assert_eq!(long_tests(&text("")), []);
    assert_eq!(long_tests(&text("\n")), [("long".to_owned(), 121)]);
}
