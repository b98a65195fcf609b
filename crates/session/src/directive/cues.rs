//! Cue words of each language, and the language of a sentence.
//!
//! Phrases are separated by `|`. A language without an entry for a cue says nothing by it.

use anamnesis_text::word_list::WordTable;

use crate::phrases::{Words, is_dense};

/// The cues of a language.
pub(super) struct Cues {
    /// Frequent words, which tell the language.
    frequent: &'static str,
    /// Phrases that make a sentence general.
    pub(super) general: &'static str,
    /// Phrases that make a sentence general at the beginning of a clause.
    pub(super) general_first: &'static str,
    /// Adverbs that make an order general, but a report only stronger.
    pub(super) adverb: &'static str,
    /// Words before such an adverb in an order or a habit; empty if word order does not tell.
    pub(super) before_adverb: &'static str,
    /// Phrases for this project, which make a sentence general.
    pub(super) here: &'static str,
    /// Beginnings that forbid.
    pub(super) forbidding: &'static str,
    pub(super) negation: &'static str,
    /// Phrases that set one thing against another.
    pub(super) contrast: &'static str,
    /// Phrases that say that something was wrong.
    pub(super) wrong: &'static str,
    /// Beginnings that contradict.
    pub(super) contradicting: &'static str,
    /// Phrases that say how a person or a team does things.
    pub(super) habit: &'static str,
    /// Phrases that say how something has to be.
    pub(super) wish: &'static str,
    pub(super) reason: &'static str,
    /// Phrases about this one step.
    pub(super) step: &'static str,
    /// Beginnings of orders and requests.
    pub(super) order: &'static str,
    /// Beginnings of reports, and phrases of what does not work.
    pub(super) report: &'static str,
    pub(super) failing: &'static str,
    /// Beginnings of opinions.
    pub(super) opinion: &'static str,
    /// Beginnings whose meaning is in the sentence before.
    pub(super) pronoun: &'static str,
    /// Words that point out of the sentence.
    pub(super) deixis: &'static str,
    /// Beginnings of questions for a reason.
    pub(super) why: &'static str,
    /// Phrases that make such a question a complaint.
    pub(super) again: &'static str,
    /// Heads of lists of rules.
    pub(super) rules: &'static str,
}

/// Returns the cues of a sentence's language: by its script, else by its frequent words.
pub(super) fn cues(words: &Words) -> &'static Cues {
    let text = words.as_str();
    if is_dense(text) {
        let is_kana = |c| matches!(c, '\u{3040}'..='\u{30ff}');
        return if text.contains(is_kana) {
            &JAPANESE
        } else {
            &CHINESE
        };
    }
    if text.contains(|c| matches!(c, '\u{ac00}'..='\u{d7af}')) {
        return &KOREAN;
    }
    if text.contains(|c| matches!(c, '\u{0400}'..='\u{04ff}')) {
        return &RUSSIAN;
    }
    let mut best = (&ENGLISH, 0);
    for (language, frequent) in LATIN.into_iter().zip(&FREQUENT) {
        let count = words.iter().filter_map(|word| frequent.get(word)).count();
        if count > best.1 {
            best = (language, count);
        }
    }
    best.0
}

/// Returns the cues of every language.
pub(super) fn all_cues() -> impl Iterator<Item = &'static Cues> {
    LATIN
        .into_iter()
        .chain([&RUSSIAN, &CHINESE, &JAPANESE, &KOREAN])
}

/// The frequent words of each language in Latin script.
#[rustfmt::skip]
static FREQUENT: [WordTable<(), 48, 128>; LATIN.len()] = [
    frequent(0), frequent(1), frequent(2), frequent(3),
    frequent(4), frequent(5), frequent(6), frequent(7),
];

const fn frequent(language: usize) -> WordTable<(), 48, 128> {
    WordTable::EMPTY.with(LATIN[language].frequent, b'|', ())
}

/// The languages in Latin script; of equal counts the first counts.
const LATIN: [&Cues; 8] = [
    &ENGLISH,
    &GERMAN,
    &FRENCH,
    &SPANISH,
    &PORTUGUESE,
    &ITALIAN,
    &DUTCH,
    &POLISH,
];

const ENGLISH: Cues = Cues {
    frequent: "the|a|an|is|are|be|to|of|and|in|on|for|with|it|this|that|i|you|we|do|don't|not|no|as|by|from|use|\
        my|our|your|never|always|please|should|must|have|has|can|will|when|if|or|but|all|any|without|before",
    general: "from now on|going forward|as a rule|at all times|under no circumstances|no matter what|\
        every time you|every time we|each time you|each time we|whenever you|whenever we|every commit|each commit|\
        every change|each change|every push|each push|every release|each release|every merge|every pull request|\
        every pr|each pr|every task|each task|every session|each session|every deploy|every new|each new|\
        without asking|without my approval|without my permission|without my ok|unless i ask|unless i say|\
        unless i tell|unless i explicitly|unless asked|unless told|unless explicitly|don't ever|dont ever|do not ever|\
        never ever|ever again|we no longer|main directive|our rule|our convention|our policy|our standard|\
        house rule|the rule is that|the convention is that|not anymore",
    general_first: "next time|in future|in the future|every time|each time|whenever|in general|generally",
    adverb: "always|never",
    before_adverb: "please|pls|and|or|but|also|so|then|no|ok|you|we|should|shouldn't|must|shall|to|do|be|just|that|\
        remember|important|note",
    here: "in this repo|in this repository|in this project|in this codebase|in our repo|in our repository|\
        in our project|in our codebase|in this team|in our team|this repo|this repository|this project|this codebase|this workspace|around here|throughout the project|across the project|across the codebase|across the application",
    forbidding: "don't|dont|do not|never|avoid|stop|we don't|we dont|we do not|you shouldn't|you should not|we never|\
        no more|you mustn't|you must not|you dont need|you don't need|you do not need|we shouldn't|we should not|\
        without|must not|i don't want|i dont want|i do not want",
    negation: "don't|dont|do not|doesn't|doesnt|does not|shouldn't|shouldnt|should not|can't|cannot|stop|without|\
        avoid|won't|wouldn't|not|didn't|didnt|isn't|isnt|no|never|nothing|aren't|arent|hasn't|haven't|needn't|\
        mustn't",
    contrast: "instead|instead of|in place of|rather than|unless|not just|except|rather|but not|only when|only if|only on|only in",
    wrong: "wrong|incorrect|not correct|not right|left out|you forgot|you missed|i asked you|i only wanted|i meant|\
        you should have|that's not|thats not|that is not|not what i|you didn't|you didnt|my mistake|the issue was|\
        the problem was|was already|i told you",
    contradicting: "no|nope|nah|wait|stop|actually|but|hmm|rather",
    habit: "myself|i'll handle|i will handle|prefer|i'd rather|we use|we rely|we're using|we are using|we keep|we never|we always|we don't use|\
        we dont use|we do not use|remember that|remember to|keep in mind|note that|we don't have|we dont have|\
        we do not have|we only|i like to|i like my|we want|i want to replace|our team|we follow",
    wish: "should be|should use|should not|shouldn't|should have|should only|has to be|have to be|\
        needs to be|need to be|must|mustn't|supposed to",
    reason: "because|since|so that|the reason|due to|that's why|thats why|in order to|the issue is|the problem is|\
        turns out|otherwise|thats how|that's how|to avoid|to prevent|as we",
    step: "yet|for now|right now|this time|just this once|for this commit|for this task|for this session|for a second|for a moment|for the moment|\
        until i|until we|before i|at this point|today|in this pr|in this commit|this one time|anything else|\
        any further|bother|just now|try again",
    order: "add|write|create|make|update|change|fix|implement|build|move|rename|remove|delete|refactor|replace|set|\
        put|generate|produce|document|review|check|look|read|explain|show|tell|give|find|list|mention|record|\
        include|commit|push|merge|run|test|try|continue|go|start|open|close|install|compare|split|fold|convert|\
        clean|help|compile|deploy|print|describe|summarize|summarise|draft|plan|think|search|investigate|debug|\
        verify|confirm|undo|revert|restore|rebase|squash|bump|release|publish|answer|redo|rerun|pick|choose|\
        complete|finish|proceed|resume|analyze|analyse|sort|format|take|get|let|let's|lets|can you|could you|\
        would you|will you|can we|could we|shall we|should we|i want you|i need you|i'd like you|now|spend|cover|\
        consider|ensure|be sure|read|repeat|extract|configure|enable|disable|bring|align|drop|hide|display",
    report: "i just|i did|i had|i have|i've|ive|i went|i got|i changed|i added|i updated|i moved|i made|i put|\
        i created|i enabled|i tried|i ran|i see|i saw|i noticed|i found|i get|i'm getting|im getting|i'm currently|\
        we just|we had|we have|it worked|it works|it never|it always|it only|it still|still|same|done|i always|\
        i never|i don't see|i dont see|i can't|i cant|i cannot|i don't know|i don't understand|i don't recall|\
        i don't remember|looks like|it looks|it seems|there is|there's|there are|when i|every time i|each time i|\
        whenever i|the error|i used|i use|i am|as a user|as an admin|as a customer",
    failing: "fails|failed|crashes|crashed|breaks|broke|is broken|are broken|hangs|never works|never worked|doesn't work|does not work|\
        doesnt work|not working|throws|errors|error|it must be|must be because|must have been|must be the|\
        there must be|have you ever|ever since|never heard|never seen|works now|now works",
    opinion: "i think|i feel|i wonder|i guess|i suppose|i believe|i assume|i doubt|i hope|maybe|perhaps|not sure|\
        i'm not sure|im not sure|i'm pretty sure|in my opinion|imo|i would assume|seems|in theory|i don't think|\
        i dont think|probably|it would be|would be|like|you gave me|what if|how about|what about",
    pronoun: "it|it's|its|this|that|that's|thats|these|those|they|they're|he|she|both|the first|the second|the third|\
        the last one|the latter|the former|the other|first|second|third|same|which|is|are|was|were|does|doesn't|\
        should|needs|has|must be|will|won't|isn't|also not|neither|either|one|another|because|since it|since that|since this",
    deixis: "above|below|following|previous|aforementioned|latter|former|attached|the same|as before|like before|\
        the other one|this one|that one|these|those|such",
    why: "why|how come|how often|how many times",
    again: "still|again|not|don't|didn't|didnt|aren't|arent|isn't|doesn't|haven't|did you|are you using|do you use",
    rules: "rules|rule|conventions|convention|guidelines|constraints|principles|requirements|standards|policy|policies",
};

const GERMAN: Cues = Cues {
    frequent: "der|die|das|und|ist|nicht|ein|eine|einen|zu|mit|auf|für|wir|ich|du|bitte|kein|keine|im|den|dem|von|\
        sich|aber|oder|wenn|immer|niemals|nur|noch|doch|statt|auch|es|in|ohne|nach|vor|jedem|jeder|ab|warum",
    general: "ab jetzt|ab sofort|von nun an|künftig|in zukunft|zukünftig|grundsätzlich|jedes mal|in jedem fall|\
        unter keinen umständen|auf keinen fall|nie wieder|nach jedem|nach jeder|vor jedem|vor jeder|bei jedem|\
        bei jeder|ohne zu fragen|ohne rückfrage|ohne meine zustimmung|nicht mehr",
    general_first: "nächstes mal|beim nächsten mal|immer wenn",
    adverb: "immer|nie|niemals|stets",
    before_adverb: "",
    here: "in diesem repo|in diesem repository|in diesem projekt|in unserem projekt|bei uns",
    forbidding: "kein|keine|keinen|nicht|bitte nicht|bitte kein|bitte keine|wir verwenden kein|wir nutzen kein|\
        verwende nicht|verwende kein|nutze kein|benutze nicht|niemals|nie",
    negation: "nicht|kein|keine|keinen|ohne|nie",
    contrast: "statt|anstatt|stattdessen|sondern|außer|nur wenn|nur bei",
    wrong: "falsch|ich meinte|du hast vergessen|vergessen|stimmt nicht|war nicht gemeint|das problem war",
    contradicting: "nein|aber|doch|halt|stopp|sondern|nee",
    habit: "wir verwenden|wir nutzen|wir benutzen|wir haben kein|wir haben keine|ich bevorzuge|denk daran|beachte|mir ist lieber",
    wish: "soll|sollen|sollte|sollten|muss|müssen|darf|dürfen|achte darauf|wichtig",
    reason: "weil|damit|da wir|denn|sonst|um zu|wegen",
    step: "noch nicht|vorerst|fürs erste|erst mal|erstmal|diesmal|im moment|gerade|jetzt nicht|heute|jetzt erst",
    order: "bitte|kannst du|könntest du|mach|mache|füge|schreib|schreibe|erstelle|ändere|entferne|lösche|zeig|zeige|\
        erklär|prüfe|schau|lass uns|committe|pushe|weiter|baue|behebe|such|teste",
    report: "ich habe|ich hab|es gibt|das ist|es ist|ich bekomme|ich sehe|wir haben|immer noch",
    failing: "schlägt fehl|fehler|geht nicht|funktioniert nicht|hängt|stürzt|kaputt|immer noch|immer wieder|wie immer|fehl|funktioniert|geht",
    opinion: "ich glaube|ich denke|ich finde|vielleicht|meiner meinung|ich frage mich|wahrscheinlich|ich bin nicht sicher",
    pronoun: "das|dies|diese|dieser|dieses|er|es|sie|die erste|der erste|das erste|beide|ist|sollte|muss",
    deixis: "das hier|dies|diese|dieser|dieses|diesen|diesem|damit|dafür|dort|oben|unten|folgende|folgenden|es|ihn|so|davon",
    why: "warum|wieso|weshalb",
    again: "noch|schon wieder|wieder|nicht|kein|keine",
    rules: "regeln|vorgaben|konventionen|richtlinien|anforderungen|grundsätze",
};

const FRENCH: Cues = Cues {
    frequent: "le|la|les|un|une|des|du|de|et|est|pas|ne|on|nous|je|tu|vous|pour|avec|dans|sur|que|qui|ce|mais|ou|\
        toujours|jamais|plus|sans|avant|il|faut|ça|chaque|en|au|pourquoi|n'utilise",
    general: "désormais|dorénavant|à partir de maintenant|à l'avenir|chaque fois|à chaque|avant chaque|après chaque|\
        en aucun cas|plus jamais|sans demander|sans mon accord|en toutes circonstances",
    general_first: "la prochaine fois",
    adverb: "toujours|jamais",
    before_adverb: "",
    here: "dans ce dépôt|dans ce projet|dans ce repo|dans notre projet|chez nous",
    forbidding: "ne|n'utilise|n'utilisez|pas de|évite|évitez|on n'utilise pas|on n'utilise|nous n'utilisons pas|interdit|jamais|il ne faut pas",
    negation: "pas|ne|jamais|sans|aucun|aucune|plus",
    contrast: "au lieu de|plutôt que|plutôt|sauf|et non|et pas|uniquement si|seulement si",
    wrong: "c'est faux|erreur de ta part|je voulais dire|tu as oublié|ce n'est pas|incorrect|pas correct",
    contradicting: "non|mais|attends|stop",
    habit: "je préfère|on utilise|nous utilisons|souviens-toi|n'oublie pas|on n'a pas de|nous n'avons pas",
    wish: "doit|doivent|devrait|il faut|assure-toi|important",
    reason: "parce que|car|afin de|pour éviter|sinon|puisque",
    step: "pas encore|pour l'instant|pour le moment|cette fois|aujourd'hui|tout de suite",
    order: "ajoute|écris|crée|fais|mets|change|corrige|supprime|montre|explique|vérifie|peux-tu|peux tu|pourrais-tu|s'il te plaît|continue|lance|regarde",
    report: "j'ai|il y a|c'est|je vois|je reçois|on a",
    failing: "échoue|erreur|plante|marche pas|fonctionne pas|toujours pas|marche|fonctionne|comme toujours",
    opinion: "je pense|je crois|peut-être|à mon avis|je me demande|je trouve",
    pronoun: "ça|cela|ceci|c'est|il|elle|ils|elles|celui-ci|celle-ci|ce|le premier|la première|est|doit",
    deixis: "ça|cela|ceci|celui-ci|celle-ci|ce|cette|ces|cet|ci-dessus|ci-dessous|suivant|suivante|là",
    why: "pourquoi",
    again: "encore|toujours|pas",
    rules: "règles|conventions|contraintes|consignes|principes|exigences",
};

const SPANISH: Cues = Cues {
    frequent: "el|la|los|las|un|una|de|y|es|no|en|que|por|con|para|se|lo|del|al|nunca|siempre|pero|si|antes|sin|\
        cada|debe|usa|usamos|más|ya|esto|como|qué",
    general: "a partir de ahora|de ahora en adelante|en adelante|en el futuro|cada vez que|antes de cada|después de cada|\
        en cada|bajo ninguna circunstancia|nunca más|sin preguntar|sin mi permiso|sin mi aprobación|ya no usamos",
    general_first: "la próxima vez",
    adverb: "siempre|nunca|jamás",
    before_adverb: "",
    here: "en este repo|en este repositorio|en este proyecto|en nuestro proyecto",
    forbidding: "no uses|no hagas|no usamos|no|nunca|evita|no quiero|sin",
    negation: "no|sin|nunca|ningún|ninguna",
    contrast: "en lugar de|en vez de|sino|excepto|salvo|y no|solo si|sólo si",
    wrong: "incorrecto|está mal|quería decir|te olvidaste|olvidaste|no es correcto|equivocado",
    contradicting: "no|pero|espera",
    habit: "prefiero|usamos|no usamos|recuerda que|recuerda|ten en cuenta|no tenemos",
    wish: "debe|deben|debería|deberían|tiene que|hay que|asegúrate|importante",
    reason: "porque|para que|para evitar|ya que|si no",
    step: "todavía|por ahora|aún no|de momento|esta vez|hoy|ahora mismo",
    order: "añade|agrega|escribe|crea|haz|cambia|corrige|borra|elimina|muestra|explica|revisa|puedes|podrías|por favor|continúa|ejecuta|mira",
    report: "he|hay|tengo|veo|me sale|acabo de|no sé|no funciona|no veo|no entiendo|no puedo",
    failing: "falla|error|no funciona|funciona|se cae|como siempre",
    opinion: "creo|pienso|quizás|tal vez|en mi opinión|me pregunto|me parece",
    pronoun: "esto|eso|este|esta|ese|esa|él|ella|lo|el primero|la primera|es|debe",
    deixis: "esto|eso|este|esta|ese|esa|estos|esas|lo mismo|arriba|abajo|siguiente|anterior|así|ahí",
    why: "por qué",
    again: "todavía|otra vez|sigue|sigues|aún|no",
    rules: "reglas|convenciones|restricciones|requisitos|principios|normas",
};

const PORTUGUESE: Cues = Cues {
    frequent: "o|a|os|as|um|uma|de|do|da|e|é|não|em|no|na|que|por|com|para|se|nunca|sempre|mas|antes|sem|cada|você|usamos|isso|já",
    general: "a partir de agora|de agora em diante|daqui em diante|no futuro|toda vez que|antes de cada|depois de cada|\
        em cada|em hipótese alguma|nunca mais|sem perguntar|sem minha aprovação",
    general_first: "da próxima vez",
    adverb: "sempre|nunca|jamais",
    before_adverb: "",
    here: "neste repositório|neste repo|neste projeto|no nosso projeto",
    forbidding: "não|nunca|evite|sem",
    negation: "não|sem|nunca|nenhum|nenhuma",
    contrast: "em vez de|ao invés de|exceto|e não|mas sim|só se",
    wrong: "errado|incorreto|eu quis dizer|você esqueceu|não está certo",
    contradicting: "não|mas|espera",
    habit: "prefiro|usamos|não usamos|lembre-se|lembre que|não temos",
    wish: "deve|devem|deveria|tem que|é preciso|importante",
    reason: "porque|para que|para evitar|já que|senão",
    step: "ainda|por enquanto|desta vez|hoje|agora não",
    order: "adicione|escreva|crie|faça|mude|corrija|remova|apague|mostre|explique|verifique|pode|poderia|por favor|continue|execute",
    report: "eu fiz|há|tenho|vejo|acabei|não sei|não funciona|não consigo|não vejo",
    failing: "falha|erro|não funciona|funciona|quebra|como sempre",
    opinion: "acho|talvez|na minha opinião|penso|me pergunto",
    pronoun: "isso|isto|este|esta|esse|essa|ele|ela|o primeiro|é|deve",
    deixis: "isso|isto|este|esta|esse|essa|estes|essas|o mesmo|acima|abaixo|seguinte|anterior|assim",
    why: "por que|porque",
    again: "ainda|de novo|outra vez|não",
    rules: "regras|convenções|restrições|requisitos|princípios",
};

const ITALIAN: Cues = Cues {
    frequent: "il|lo|la|i|gli|le|un|una|di|e|è|non|in|che|per|con|si|del|della|mai|sempre|ma|prima|senza|ogni|usiamo|questo|da",
    general: "d'ora in poi|da ora in poi|in futuro|ogni volta che|prima di ogni|dopo ogni|a ogni|in nessun caso|mai più|\
        senza chiedere|senza il mio consenso",
    general_first: "la prossima volta",
    adverb: "sempre|mai",
    before_adverb: "",
    here: "in questo repo|in questo repository|in questo progetto|nel nostro progetto",
    forbidding: "non|mai|evita|senza",
    negation: "non|senza|mai|nessun|nessuna",
    contrast: "invece di|al posto di|piuttosto che|tranne|e non|solo se",
    wrong: "sbagliato|non è corretto|volevo dire|hai dimenticato|errato",
    contradicting: "no|ma|aspetta",
    habit: "preferisco|usiamo|non usiamo|ricorda|ricordati|non abbiamo",
    wish: "deve|devono|dovrebbe|bisogna|assicurati|importante",
    reason: "perché|affinché|per evitare|dato che|altrimenti",
    step: "ancora|per ora|per il momento|questa volta|oggi",
    order: "aggiungi|scrivi|crea|fai|cambia|correggi|rimuovi|elimina|mostra|spiega|controlla|puoi|potresti|per favore|continua|esegui",
    report: "ho|c'è|ci sono|vedo|non so|non funziona|non riesco|non vedo",
    failing: "fallisce|errore|non funziona|funziona|si blocca|come sempre",
    opinion: "penso|credo|forse|secondo me|mi chiedo",
    pronoun: "questo|questa|quello|quella|esso|lui|lei|il primo|è|deve",
    deixis: "questo|questa|quello|quella|questi|queste|lo stesso|sopra|sotto|seguente|precedente|così",
    why: "perché",
    again: "ancora|di nuovo|non",
    rules: "regole|convenzioni|vincoli|requisiti|principi",
};

const DUTCH: Cues = Cues {
    frequent: "de|het|een|en|is|niet|van|op|met|voor|we|wij|ik|je|jij|dat|geen|altijd|nooit|maar|zonder|elke|bij|gebruik|gebruiken|ook|te",
    general: "vanaf nu|voortaan|in de toekomst|elke keer|bij elke|na elke|voor elke|in geen geval|nooit meer|zonder te vragen|zonder mijn toestemming",
    general_first: "de volgende keer|volgende keer",
    adverb: "altijd|nooit",
    before_adverb: "",
    here: "in deze repo|in dit project|in ons project|bij ons",
    forbidding: "geen|niet|nooit|gebruik geen|vermijd|we gebruiken geen|zonder",
    negation: "niet|geen|zonder|nooit",
    contrast: "in plaats van|behalve|maar niet|alleen als",
    wrong: "fout|verkeerd|klopt niet|ik bedoelde|je bent vergeten",
    contradicting: "nee|maar|wacht",
    habit: "we gebruiken|wij gebruiken|liever|onthoud dat|we hebben geen",
    wish: "moet|moeten|zou moeten|zorg dat|belangrijk",
    reason: "omdat|zodat|want|anders",
    step: "nog niet|voorlopig|deze keer|vandaag|nu even",
    order: "voeg|schrijf|maak|verander|verwijder|toon|leg|controleer|kun je|kan je|graag|ga door|draai|kijk",
    report: "ik heb|er is|er zijn|ik zie|ik krijg",
    failing: "faalt|fout|werkt niet|werkt|crasht|zoals altijd|nog steeds",
    opinion: "ik denk|misschien|volgens mij|ik vraag me af|ik vind",
    pronoun: "dit|dat|deze|die|hij|zij|het|de eerste|is|moet",
    deixis: "dit|deze|die|daar|hierboven|hieronder|volgende|zo|ermee",
    why: "waarom",
    again: "nog steeds|weer|niet|geen",
    rules: "regels|afspraken|richtlijnen|eisen",
};

const POLISH: Cues = Cues {
    frequent: "i|w|na|się|nie|że|do|jest|z|to|jak|ale|czy|po|od|dla|za|ten|przez|tylko|już|być|może|mamy|proszę|używamy|\
        zawsze|nigdy|bez|przed|każdym|każdą|każdej|używaj|dlaczego|znowu|zamiast|są|ma|my|tej|tym|u|nas|pamiętaj|jeszcze",
    general: "od teraz|od dzisiaj|od dziś|odtąd|za każdym razem|na przyszłość|w przyszłości|z zasady|pod żadnym pozorem|\
        nigdy więcej|przed każdym|przed każdą|po każdym|po każdej|przy każdym|przy każdej|bez pytania|bez mojej zgody|\
        już nie używamy|w każdym",
    general_first: "następnym razem",
    adverb: "zawsze|nigdy",
    before_adverb: "i|a|ale|oraz|też|teraz|że|żeby|aby|my|proszę|należy|trzeba|musi|muszą|używamy|używaj|pisz|uruchamiaj|nie",
    here: "w tym repo|w tym repozytorium|w tym projekcie|w naszym projekcie|w naszym repo|u nas",
    forbidding: "nie|nigdy|proszę nie|bez|unikaj|nigdy nie",
    negation: "nie|bez|nigdy|żaden|żadnych|żadnego",
    contrast: "zamiast|a nie|lecz|raczej niż|oprócz|tylko gdy|tylko jeśli",
    wrong: "źle|błędnie|nie tak|zapomniałeś|zapomniałaś|miałem na myśli|chodziło mi|niepoprawnie|prosiłem|prosiłam|nie o to|nieprawda",
    contradicting: "nie|ale|czekaj|stop",
    habit: "używamy|korzystamy z|wolę|preferuję|stosujemy|nie używamy|pamiętaj|nie mamy|trzymamy się",
    wish: "powinno|powinien|powinna|powinny|musi|muszą|ma być|mają być|trzeba|należy|upewnij się|ważne",
    reason: "bo|ponieważ|żeby|dlatego|gdyż|aby|inaczej",
    step: "na razie|jeszcze|tym razem|póki co|w tym commicie|dzisiaj|chwilowo",
    order: "dodaj|napisz|stwórz|zrób|zmień|popraw|usuń|pokaż|wyjaśnij|sprawdź|możesz|mógłbyś|proszę|kontynuuj|uruchom|przenieś|zobacz|wypchnij|zacommituj",
    report: "mam|jest|są|widzę|dostaję|zrobiłem|właśnie|nie wiem|nie rozumiem|nie ma|nie widzę|nie mogę|nie da się|nie udało|nie działa|nie chce",
    failing: "nie działa|wywala|wysypuje|błąd|błędy|pada|nie udaje się|sypie|działa|jak zawsze|działało",
    opinion: "myślę|wydaje mi się|chyba|moim zdaniem|może|zastanawiam się|sądzę|uważam",
    pronoun: "to|ten|ta|te|on|ona|ono|one|oni|tamto|tamten|tego|tym|taki|takie|pierwszy|drugi|jest|powinno|ma być|musi",
    deixis: "to|ten|ta|tego|tej|tym|tych|tamto|tamten|powyżej|poniżej|powyższe|tak|je|go|ją|ich|poprzednie",
    why: "dlaczego|czemu|po co",
    again: "znowu|nadal|wciąż|ciągle|nie|dalej",
    rules: "zasady|reguły|wytyczne|wymagania|konwencje",
};

const RUSSIAN: Cues = Cues {
    frequent: "",
    general: "с этого момента|отныне|впредь|в будущем|каждый раз|перед каждым|после каждого|при каждом|ни в коем случае|\
        никогда больше|больше не|без спроса|без моего разрешения|всякий раз|з цього моменту|відтепер|щоразу",
    general_first: "в следующий раз|наступного разу",
    adverb: "всегда|никогда|завжди|ніколи",
    before_adverb: "",
    here: "в этом репозитории|в этом проекте|в нашем проекте|у нас|у цьому проєкті",
    forbidding: "не|никогда|нельзя|без|пожалуйста не|мы не|ніколи",
    negation: "не|без|никогда|нет|нельзя",
    contrast: "вместо|а не|кроме|только если|замість",
    wrong: "неправильно|неверно|я имел в виду|ты забыл|не то|ошибся",
    contradicting: "нет|но|стой|подожди|ні|але",
    habit: "мы используем|предпочитаю|мы не используем|помни|у нас нет|учти|ми використовуємо",
    wish: "должен|должна|должно|должны|нужно|надо|следует|важно|повинен|треба",
    reason: "потому что|чтобы|так как|иначе|поскольку|бо",
    step: "пока|ещё не|еще не|в этот раз|сегодня|сейчас",
    order: "добавь|напиши|создай|сделай|измени|исправь|удали|покажи|объясни|проверь|можешь|пожалуйста|продолжай|запусти",
    report: "я сделал|есть|вижу|получаю|не знаю|не понимаю|не могу|не вижу|не работает",
    failing: "не работает|ошибка|падает|работает|как всегда|не получается|сломано",
    opinion: "думаю|кажется|наверное|может быть|по-моему|я считаю",
    pronoun: "это|этот|эта|эти|то|он|она|оно|они|первый|второй|такой",
    deixis: "это|этот|эта|этого|эти|этих|выше|ниже|так|его|их|следующее|предыдущее|тот",
    why: "почему|зачем|чому",
    again: "опять|снова|всё ещё|все еще|не",
    rules: "правила|требования|ограничения|соглашения",
};

const CHINESE: Cues = Cues {
    frequent: "",
    general: "从现在开始|从现在起|从今以后|今后|以后都|以后请|以后不要|以后别|以后必须|每次都要|每次都必须|每次提交|每次修改|\
        一律|始终|务必|任何时候|任何情况下|不要再|永远不要|绝不|决不|千万不要|千万别|再也不要|未经同意|未经我|每当|一定要|不再使用",
    general_first: "以后|下次|每次",
    adverb: "永远|总是|必须|不再|都要",
    before_adverb: "",
    here: "这个项目|本项目|这个仓库|本仓库|这个代码库|我们项目|我们的项目|我们团队",
    forbidding: "不要|别|请不要|请勿|不需要|我现在不需要|禁止|不许|不应该|不准|我们不|请别|绝不|不能用",
    negation: "不要|不是|不需要|不应该|没有|不用|别用|不准|禁止",
    contrast: "而不是|只用|只需要|只能|仅限|改用|换成|代替|而非|除非",
    wrong: "不对|错了|不是的|我的意思是|搞错|弄错|是错误的|你漏了|你忘了|写错|不正确|有误|不是这个意思",
    contradicting: "不|不是|但是|但|等等",
    habit: "我们用|我们使用|才是标准|为标准|为准|我们都用|我们一般|我们习惯|我喜欢|我更喜欢|我们不用|我们采用|我偏好|我习惯|我希望|我们没有",
    wish: "应该|必须|需要|得用|要用|最好|记得|确保",
    reason: "因为|所以|由于|为了|避免|否则|以免|不然",
    step: "暂时|现在先|还没|先别|先不|这次|等会|待会|今天先",
    order: "请帮|帮我|请|把|给我|可以帮我|麻烦|继续|提交|写|加|改|删|修复|解释|检查|运行|看一下|同时我想",
    report: "我将|我已经|我刚|我发现|我把|现在有|还有|但是他不会|我在",
    failing: "永远不会|总是不|一直不|报错|失败|出错|不行|不起作用|崩溃|没反应|打不开|错误",
    opinion: "我觉得|我认为|可能|也许|大概|感觉|是不是",
    pronoun: "这|那|它|他们|它们|第一个|第二个|上面|前面|后者|前者|此|他|而",
    deixis: "这个|那个|这些|那些|这样|那样|它|上面|下面|刚才|前面|上述|如下|这里|那里|这份|这段|该",
    why: "为什么|为啥|怎么",
    again: "还在|还是|还用|又|仍|没有|没按|不按|不用",
    rules: "规则|约定|规范|要求|原则|约束",
};

const JAPANESE: Cues = Cues {
    frequent: "",
    general: "今後|これからは|毎回|必ず|決して|絶対に|二度と|以後|いかなる場合も|勝手に|許可なく|その都度",
    general_first: "次回",
    adverb: "常に|いつも",
    before_adverb: "",
    here: "このリポジトリ|このプロジェクト|うちのプロジェクト|私たちのプロジェクト",
    forbidding: "禁止",
    negation: "しないで|ないで|ない|不要|禁止|やめて",
    contrast: "代わりに|ではなく|じゃなくて|だけ",
    wrong: "違う|違います|間違|そうじゃなくて|という意味|忘れて",
    contradicting: "いいえ|でも|いや|待って",
    habit: "使っています|使用しています|好みます|を使います|が好き|してほしい|ほしい",
    wish: "べき|必要があります|なければ|してください",
    reason: "から|ため|ので|理由",
    step: "今は|まだ|とりあえず|今回|今日は|一旦",
    order: "続けて|追加して|書いて|作って|直して|削除して|見せて|説明して|確認して",
    report: "しました|ました|エラーが|見つけ",
    failing: "消えない|消えません|表示されない|表示されません|動かない|動きません|エラー|失敗|落ちる|クラッシュ",
    opinion: "と思う|と思います|かも|たぶん|おそらく",
    pronoun: "これ|それ|あれ|この|その|あの|彼|一つ目|二つ目",
    deixis: "これ|それ|あれ|この|その|あの|上の|下の|以下|上記|ここ|そこ",
    why: "なぜ|どうして|なんで",
    again: "まだ|また|ない",
    rules: "ルール|規則|規約|要件|方針",
};

const KOREAN: Cues = Cues {
    frequent: "",
    general: "앞으로|이제부터|지금부터|매번|반드시|절대|다시는|어떤 경우에도|허락 없이|물어보지 않고",
    general_first: "다음부터|다음에는",
    adverb: "항상|언제나",
    before_adverb: "",
    here: "이 저장소|이 레포|이 프로젝트|우리 프로젝트",
    forbidding: "금지",
    negation: "하지 마|말고|말아|않|금지|없이",
    contrast: "대신|말고|아니라|제외",
    wrong: "틀렸|잘못|제 말은|내 말은|빠뜨렸|잊었",
    contradicting: "아니|하지만|그런데|잠깐",
    habit: "우리는|사용합니다|선호|기억해",
    wish: "해야|되어야|필요|중요",
    reason: "때문|위해|왜냐하면|않으면",
    step: "아직|지금은|이번에는|일단|오늘은",
    order: "추가해|작성해|만들어|고쳐|삭제해|보여|설명해|확인해|계속",
    report: "했습니다|했어|있습니다",
    failing: "실패|오류|에러|안 돼|안 됩니다|작동하지",
    opinion: "생각|아마|것 같",
    pronoun: "이것|그것|저것|이건|그건|첫 번째|두 번째",
    deixis: "이것|그것|저것|이건|그건|위의|아래|다음|이렇게|그렇게",
    why: "왜",
    again: "아직|또|여전히|안",
    rules: "규칙|컨벤션|요구사항|원칙",
};
