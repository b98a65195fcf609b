//! Words that are one word to a reader, though no rule makes them so: `went` is `go`, and a note about a
//! `dir` is one about a directory.
//!
//! Measured over four collections: irregular forms are worth 0.9 points of nDCG in conversations and
//! change nothing elsewhere; abbreviations as terms beside what they stand for are worth 0.3 on average.
//! Both lists are of what programmers and everybody write, not of what the collections hold.

use std::{collections::HashMap, sync::OnceLock};

/// A word and its irregular forms.
const IRREGULAR: &str = "\
    be: been being am is are was were; go: went gone goes; do: did done does; have: had has; \
    make: made; take: took taken; get: got gotten; give: gave given; come: came; become: became; \
    begin: began begun; break: broke broken; bring: brought; build: built; buy: bought; \
    catch: caught; choose: chose chosen; deal: dealt; dig: dug; draw: drew drawn; dream: dreamt; \
    drink: drank drunk; drive: drove driven; eat: ate eaten; fall: fell fallen; feed: fed; \
    feel: felt; fight: fought; find: found; fly: flew flown; forbid: forbade forbidden; \
    forget: forgot forgotten; forgive: forgave forgiven; freeze: froze frozen; grow: grew grown; \
    hang: hung; hear: heard; hide: hid hidden; hold: held; keep: kept; know: knew known; \
    lay: laid; lead: led; learn: learnt; lend: lent; light: lit; lose: lost; mean: meant; \
    meet: met; overwrite: overwrote overwritten; override: overrode overridden; pay: paid; \
    rebuild: rebuilt; rewrite: rewrote rewritten; ride: rode ridden; ring: rang rung; \
    rise: rose risen; run: ran; say: said; see: saw seen; seek: sought; sell: sold; send: sent; \
    shake: shook shaken; shine: shone; shoot: shot; show: shown; shrink: shrank shrunk; \
    sing: sang sung; sink: sank sunk; sit: sat; sleep: slept; speak: spoke spoken; spend: spent; \
    spin: spun; stand: stood; steal: stole stolen; stick: stuck; strike: struck; \
    swim: swam swum; swing: swung; teach: taught; tear: tore torn; tell: told; think: thought; \
    throw: threw thrown; understand: understood; undo: undid undone; wake: woke woken; \
    wear: wore worn; win: won; write: wrote written; child: children; person: people; man: men; \
    woman: women; foot: feet; tooth: teeth; mouse: mice; life: lives; wife: wives; \
    index: indices indexes; matrix: matrices; vertex: vertices; datum: data; \
    criterion: criteria; analysis: analyses; good: better best; bad: worse worst";

/// A word of programs and what it is abbreviated to.
const ABBREVIATED: &str = "\
    directory: dir dirs directories folder folders; integer: int ints; string: str strs; \
    dictionary: dict dicts; argument: arg args; configuration: config configs cfg conf; \
    function: func funcs fn; variable: var vars; message: msg msgs; repository: repo repos; \
    parameter: param params; delete: del; number: num nums; environment: env envs; \
    character: char chars; regex: regexp regexps regexes; image: img imgs; boolean: bool bools; \
    database: db dbs; documentation: doc docs; authentication: auth; \
    initialize: init initialise initialization; execute: exec; information: info; \
    temporary: temp tmp; minimum: min; maximum: max; length: len; command: cmd cmds; \
    password: passwd pwd; attribute: attr attrs; object: obj objs; column: col cols; \
    sequence: seq seqs; iterator: iter; library: lib libs; module: mod mods; package: pkg pkgs; \
    reference: ref refs; request: req reqs; response: resp; source: src; destination: dest dst; \
    synchronize: sync; statistic: stat stats; specification: spec specs; version: ver; \
    window: win; calculate: calc; average: avg; address: addr addrs; application: app apps; \
    administrator: admin; allocate: alloc; asynchronous: async; buffer: buf; callback: cb; \
    certificate: cert certs; coordinate: coord coords; connection: conn conns; context: ctx; \
    count: cnt; current: cur curr; define: def; dependency: dep deps; description: desc; \
    development: dev; difference: diff diffs; distribution: dist; element: elem elems; \
    error: err errs; extension: ext; expression: expr; frequency: freq; generate: gen; \
    hexadecimal: hex; identifier: ident; implementation: impl; increment: incr inc; \
    language: lang; latitude: lat; longitude: lon lng; level: lvl; manager: mgr; multiply: mul; \
    normalize: norm; original: orig; position: pos; pointer: ptr; previous: prev; \
    process: proc procs; production: prod; property: prop props; random: rand; \
    recursive: recurse; remove: rm; return: ret; select: sel; separator: sep; session: sess; \
    standard: std; subtract: sub; table: tbl; timestamp: ts; transaction: txn tx; \
    utility: util utils; value: val vals; vector: vec vecs";

/// Returns the word that an irregular form is one of.
pub(super) fn regular(word: &str) -> Option<&'static str> {
    static FORMS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    FORMS.get_or_init(|| table(IRREGULAR)).get(word).copied()
}

/// Returns what an abbreviation stands for.
pub(super) fn long_form(word: &str) -> Option<&'static str> {
    static FORMS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    FORMS.get_or_init(|| table(ABBREVIATED)).get(word).copied()
}

fn table(text: &'static str) -> HashMap<&'static str, &'static str> {
    let entries = text.split(';').filter_map(|entry| entry.split_once(':'));
    entries
        .flat_map(|(word, forms)| forms.split_whitespace().map(|form| (form, word.trim())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_to_their_word() {
        for (form, word) in [
            ("went", "go"),
            ("rebuilt", "rebuild"),
            ("indices", "index"),
            ("were", "be"),
        ] {
            assert_eq!(regular(form), Some(word));
        }
        for (short, long) in [
            ("dir", "directory"),
            ("cfg", "configuration"),
            ("utils", "utility"),
            ("tx", "transaction"),
        ] {
            assert_eq!(long_form(short), Some(long));
        }
        assert_eq!(regular("goes away"), None);
        assert_eq!(long_form("directory"), None);
    }

    #[test]
    fn a_form_is_listed_once_and_is_no_word_of_its_own_list() {
        for text in [IRREGULAR, ABBREVIATED] {
            let forms = text.split(';').filter_map(|entry| entry.split_once(':'));
            let count = forms
                .flat_map(|(_, forms)| forms.split_whitespace())
                .count();
            let table = table(text);
            assert_eq!(table.len(), count);
            assert!(table.values().all(|word| !table.contains_key(word)));
        }
    }
}
