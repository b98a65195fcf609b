//! The phrases that give a value up, and the words around them.

/// Phrases before what is given up.
pub(super) const AFTER: &str = "no longer|instead of|rather than|in place of|stopped using|stop using|away from|\
    got rid of|get rid of|no more|dropped|ditched|retired|abandoned|formerly|previously|used to be|\
    never been|was never|were never|i said|war nie|nunca fue|nunca estuvo|n'a jamais été|\
    nicht mehr|nicht länger|statt|anstatt|anstelle von|anstelle des|weg von|ya no|en lugar de|\
    en vez de|dejamos de usar|au lieu de|plutôt que|n'utilisons plus|n'utilise plus|n'est plus|\
    já não|em vez de|em lugar de|больше не|вместо|już nie|zamiast|不再|而不是|弃用|代替";

/// Phrases around what is given up.
pub(super) const AROUND: [(&str, &str); 11] = [
    ("not", "anymore|any more|any longer|but"),
    ("n't", "anymore|any more|any longer"),
    ("never", "anymore|any more|again"),
    ("kein|keine|keinen|keinem|keiner", "mehr"),
    ("não", "mais"),
    ("ne|n'", "plus"),
    ("replace|replaced|replacing|swapped", "with|by|for"),
    ("ersetzt|ersetzen", "durch"),
    ("把|将", "改为|换成|改成"),
    ("从", "改为|换成|改成|迁移到|切换到|换到"),
    ("не", "больше"),
];

/// Verbs of a change, and the words around the old value.
pub(super) const CHANGES: &str = "moved|move|switched|switch|changed|change|migrated|migrate|went|go|upgraded|\
    renamed|rename|converted|shifted|bumped|raised|raise|lowered|lower|reduced|increased|swapped|\
    ported|umgestellt|gewechselt|umgezogen|wechseln|geändert|cambiamos|cambiado|pasamos|migramos|\
    cambió|passé|passons|migré|passés|mudamos|migrou|перешли|переехали|перенесли";
pub(super) const FROM_TO: [(&str, &str); 5] = [
    ("from", "to|into|over to"),
    ("von", "auf|zu|nach"),
    ("de", "a|al|à|para|vers"),
    ("du", "au|à|vers"),
    ("с|от", "на|к"),
];

/// Auxiliary verbs and participles after what is given up.
pub(super) const AUXILIARIES: &str = "is|are|was|were|been|got";
pub(super) const ENDED: &str = "gone|removed|dropped|retired|deleted|replaced|renamed|superseded|obsolete|\
    decommissioned|history|dead|deprecated|abandoned";
pub(super) const BEFORE: &str = "no longer exists|no longer exist|no longer used|no longer in use|\
    no longer supported|no longer valid|no longer there|no longer needed|no longer available|\
    not used anymore|not used any more|was my mistake|was a mistake|was wrong|is wrong|nicht mehr|ist weg|ist entfernt|ist abgeschafft|wurde ersetzt|\
    wurde entfernt|gibt es nicht mehr|fue reemplazado|fue eliminado|ya no existe|\
    a été remplacé|a été supprimé|n'existe plus|foi substituído|foi removido|больше нет|больше не используется|\
    已移除|已删除|已废弃|已弃用|不再使用了|ではなく|の代わりに|は廃止";

/// Verbs after a subject that is contrasted with another: "X does not …, Y does".
pub(super) const ASSERTIONS: &str = "do|does|did|is|are|was|were|has|have|will|can";
pub(super) const DENIALS: &str =
    "don't|doesn't|didn't|isn't|aren't|wasn't|weren't|hasn't|haven't|won't|can't";

/// Words before a sentence that corrects an earlier one.
pub(super) const DECLARED: &str = "correction|corrected|korrektur|corrección|correção|correzione|correctie|\
    исправление|поправка|korekta|更正|訂正";

/// A sentence without any of these gives nothing up.
pub(super) const TRIGGERS: &str = "longer|more|instead|rather|place of|from |replac|swap|gone|remov|drop|\
    retir|renam|obsolet|deprec|not |n't|away|rid of|formerly|previously|used to|stop|mehr|\
    statt|stelle|ersetz|weg|no |never|wrong|mistake|i said|nie |vez de|lugar de|plus|lieu|mais|\
    вместо|больше|不|代|从|はなく| von | de | du | с |kein|plut|не";

/// Words after "no longer" that say that something works now.
pub(super) const FAILURES: &str = "fail|fails|failing|crash|crashes|break|breaks|hang|hangs|block|blocks|leak|\
    leaks|throw|throws|lose|loses|ignore|ignores|complain|complains|collide|collides";

/// Words that begin a reason or an aside, which is not about the subject.
pub(super) const REASONS: &str = "because|since|so|as|due|when|while|after|if|unless|until|although|which|that|\
    weil|da|wenn|porque|parce|car|потому|因为";

pub(super) const PREPOSITIONS: &str = "on|in|at|of|for|from|to|with|by|into|under|via|per|off|onto|out|after|\
    before|until|within|auf|fur|von|mit|bei|en|dans|sur";

/// Words that name the sort of a value.
pub(super) const CLASSES: &str = "port|flag|option|file|path|folder|directory|branch|package|library|lib|command|\
    script|endpoint|env|variable|version|framework|tool|url|address|parameter|argument|module|\
    function|method|class|name|value|set|limit|runner|manager|format";

/// Verbs, at which the head of a sentence ends.
pub(super) const VERBS: &str = "is|are|was|were|be|been|being|has|have|had|do|does|did|will|would|can|could|must|\
    should|shall|may|might|use|uses|used|using|run|runs|ran|running|listen|listens|listened|live|\
    lives|lived|sit|sits|stand|stands|need|needs|needed|take|takes|took|get|gets|got|set|sets|put|\
    start|starts|started|call|calls|called|make|makes|keep|keeps|kept|hold|holds|go|goes|went|\
    expect|expects|work|works|write|writes|wrote|written|read|reads|store|stores|stored|save|saves|\
    send|sends|sent|accept|accepts|return|returns|wait|waits|allow|allows|give|gives|come|comes|\
    build|builds|built|deploy|deploys|deployed|serve|serves|served|point|points|pointed|bind|binds|\
    want|let|lets|stop|stops|stopped|moved|move|switched|switch|changed|change|migrated|migrate|\
    upgraded|renamed|rename|converted|shifted|bumped|raised|lowered|reduced|increased|swapped|\
    replaced|replace|removed|dropped|retired|gone|deleted|ported|pass|passes|prefer|chose|choose|\
    decided|picked|pick|agreed|configured|pinned|released|expire|expires|last|lasts";

/// Other words that say nothing about the subject.
pub(crate) const LIGHT: &str = "the|a|an|we|you|i|it|they|our|your|its|this|these|those|there|here|no|not|\
    longer|more|any|anymore|instead|rather|now|today|currently|current|new|old|also|still|always|\
    please|just|only|and|or|but|then|than|from|to|into|over|everywhere|all|both|each|every|ever|\
    again|back|up|down|place|rid|away|history|obsolete|dead|previously|formerly|yes|ok|okay|actually|sorry|wrong|right|correct|\
    really|too|well|by|with|as|us|me|my|one|never|earlier|mistake|noted|remember|let's|don't|isn't|aren't|doesn't|didn't|won't|can't|\
    shouldn't|decision|note|fact|update|correction|said|outcome|decided|mehr|nicht|statt|jetzt|\
    的|了|在|是|我|们|用|使|于|为|改|再|不|现|已|从|到|成|换|而|这|で|を|は|に|の|が|と|す|る";
