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
const ALLOWED: [(&str, &str); 1] = [
    // Two machines that one remote refused at the same moment must not retry at the same moment.
    ("sync/src/git_backend.rs", "sleep("),
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
