//! Any bytes are settings: they are read without an error, a change keeps every other key, and an
//! unreadable file is not overwritten.
#![no_main]

mod common;

use std::fs;

use anamnesis_store::settings::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let home = common::home();
    // Half of the inputs get a frame that makes them settings: the fuzzer would take long to find it.
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
