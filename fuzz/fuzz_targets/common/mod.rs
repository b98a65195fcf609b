//! A store in memory for the targets that read files, made once per thread.

use std::cell::OnceCell;

use anamnesis_store::fs::home::Home;

thread_local! {
    static HOME: OnceCell<(tempfile::TempDir, Home)> = const { OnceCell::new() };
}

/// Returns the store of this thread.
pub fn home() -> Home {
    HOME.with(|cell| {
        let (_, home) = cell.get_or_init(|| {
            // In memory a flush costs nothing.
            let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            let folder = folder.expect("a folder can be made");
            let home = Home::new(folder.path().join("store"));
            home.create().expect("a store can be made");
            (folder, home)
        });
        home.clone()
    })
}
