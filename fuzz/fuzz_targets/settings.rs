//! Any bytes are settings: they are read without an error, a change keeps every other key, and an
//! unreadable file is not overwritten.
#![no_main]

use std::{cell::OnceCell, fs};

use anamnesis_store::{fs::home::Home, settings::config::Config};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static HOME: OnceCell<(tempfile::TempDir, Home)> = const { OnceCell::new() };
}

fn home() -> Home {
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

fuzz_target!(|bytes: &[u8]| {
    let home = home();
    // Half of the inputs get a frame that makes them settings, or the fuzzer would search for it for long.
    let framed = [b"{\"remote\": \"r\", ".as_slice(), bytes, b"}"].concat();
    for text in [bytes, &framed] {
        fs::write(home.config(), text).expect("it is ours");
        let config = Config::load(&home);
        let keys = Config::keys(&home);
        assert!(config.remote.is_none() || keys.is_ok(), "a remote of no settings");
        let changed = Config::update(&home, |keys| {
            keys.insert("machine_id".to_owned(), "fuzzer".into());
        });
        let Ok(mut before) = keys else {
            assert!(changed.is_err());
            assert_eq!(fs::read(home.config()).expect("it is there"), text);
            continue;
        };
        changed.expect("settings that can be read can be changed");
        before.insert("machine_id".to_owned(), "fuzzer".into());
        assert_eq!(Config::keys(&home).expect("what we write can be read"), before);
        let again = Config::load(&home);
        assert_eq!(again.machine_id.as_deref(), Some("fuzzer"));
        assert_eq!(again.remote, config.remote);
        assert_eq!(again.trusted_variables, config.trusted_variables);
    }
});
