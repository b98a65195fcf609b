//! Any bytes are a file in the spool: it is a record or is put away as unreadable, and a record can be
//! written back and reads equal.
#![no_main]

mod common;

use std::{fs, time::Duration};

use anamnesis_store::spool::Spool;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let home = common::home();
    fs::create_dir_all(home.spool()).expect("a folder can be made");
    // Half of the inputs get a frame that makes them records: the fuzzer would take long to find it.
    let text = serde_json::Value::from(String::from_utf8_lossy(bytes));
    let framed = format!(
        r#"{{"session":{text},"at":1,"prompt_id":{text},"agent":null,"surroundings":{{"folder":{text}}},
        "private":false,"echoes":[],"what":{{"Started":{{"source":{text},"model":null}}}}}}"#
    );
    for bytes in [bytes, framed.as_bytes()] {
        let spool = Spool::new(&home);
        fs::write(home.spool().join("01JZ0000000000000000000000.json"), bytes).expect("it is ours");
        let waiting = spool.waiting(10);
        assert_eq!(waiting.len(), 1);
        let is_unreadable = spool.put_away(&waiting[0]).expect("it can be moved");
        assert_eq!(is_unreadable, waiting[0].record.is_none());
        assert!(spool.is_empty());
        spool.forget_unreadable(Duration::ZERO);
        if let Some(record) = &waiting[0].record {
            let kept = spool.keep(record).expect("a record can be written");
            let again = spool.waiting(10);
            assert_eq!(again[0].record.as_ref(), Some(record));
            assert!(spool.count_of(&record.session) == 1);
            assert!(!spool.put_away(&kept).expect("it can be removed"));
        }
    }
});
