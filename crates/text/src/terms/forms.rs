//! Words that are one word to a reader, though no rule makes them so: `went` is `go`, and a note about a
//! `dir` is one about a directory.
//!
//! Measured over four collections: irregular forms are worth 0.9 points of nDCG in conversations and
//! change nothing elsewhere; abbreviations as terms beside what they stand for are worth 0.3 on average.
//! Both lists are of what programmers and everybody write, not of what the collections hold.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::OnceLock,
};

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

/// What another word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// It is an irregular form of this one.
    Of(&'static str),
    /// It is short for this one.
    ShortFor(&'static str),
}

/// Returns what a word is a form of.
pub(super) fn form(word: &str) -> Option<Form> {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    if word.len() > LONGEST {
        return None;
    }
    FORMS.get_or_init(forms).get(word).copied()
}

/// No form is longer.
const LONGEST: usize = 14;

/// There are no more forms.
const MOST: usize = 448;

type Forms = HashMap<&'static str, Form, BuildHasherDefault<Fnv>>;

fn forms() -> Forms {
    fn each(
        text: &'static str,
        form: fn(&'static str) -> Form,
    ) -> impl Iterator<Item = (&'static str, Form)> {
        let entries = text.split(';').filter_map(|entry| entry.split_once(':'));
        entries.flat_map(move |(word, forms)| {
            forms
                .split_whitespace()
                .map(move |short| (short, form(word.trim())))
        })
    }
    // Every short-lived process makes it: without growing step by step.
    let mut forms = Forms::with_capacity_and_hasher(MOST, BuildHasherDefault::default());
    forms.extend(each(IRREGULAR, Form::Of));
    forms.extend(each(ABBREVIATED, Form::ShortFor));
    forms
}

/// FNV-1a: every word of every text is looked up, and nobody can put words into the table that make
/// it slow.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_to_their_word() {
        for (written, expected) in [
            ("went", Some(Form::Of("go"))),
            ("rebuilt", Some(Form::Of("rebuild"))),
            ("indices", Some(Form::Of("index"))),
            ("were", Some(Form::Of("be"))),
            ("dir", Some(Form::ShortFor("directory"))),
            ("cfg", Some(Form::ShortFor("configuration"))),
            ("utils", Some(Form::ShortFor("utility"))),
            ("tx", Some(Form::ShortFor("transaction"))),
            ("goes away", None),
            ("directory", None),
        ] {
            assert_eq!(form(written), expected, "{written}");
        }
    }

    #[test]
    fn a_form_is_listed_once_and_stands_for_a_word_that_is_none() {
        let listed = [IRREGULAR, ABBREVIATED]
            .iter()
            .flat_map(|text| text.split(';'))
            .filter_map(|entry| entry.split_once(':'))
            .flat_map(|(_, forms)| forms.split_whitespace());
        let table = forms();
        assert_eq!(table.len(), listed.count());
        assert!(table.len() <= MOST);
        assert_eq!(table.keys().map(|form| form.len()).max(), Some(LONGEST));
        for Form::Of(word) | Form::ShortFor(word) in table.values() {
            assert!(!matches!(form(word), Some(Form::Of(_))), "{word}");
        }
    }
}
