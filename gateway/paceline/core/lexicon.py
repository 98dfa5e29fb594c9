"""Words that tell what is asked for, in the languages callers write in: word → concept.

Full words are looked up anywhere in
the caller's own words, stems (the first five letters of a word) only where a sentence opens, and
`GLYPHS` are looked for in texts that are written without spaces.
"""

from __future__ import annotations

from collections.abc import Mapping

STEM_CHARS = 5

_WORDS: Mapping[str, str] = {
    "fix": (
        "fix fixes fixed fixing correct corrects corrected correcting repair debug bug bugs buggy "
        "broken wrong fails failing crash crashes crashing incorrect incorrectly error errors "
        "issue issues mistake mistakes typo typos resolve patch solved misspelled off-by-one "
        "fehler korrigiere korrigier behebe repariere corrige corrija corregir corrigez corriger "
        "errores errori correggi poprawić popraw düzelt corrigir erros fautes erreurs"
    ),
    "grammar": (
        "grammar grammatical grammatically spelling punctuation proofread proofreading copyedit "
        "copy-edit copy-edited spellcheck grammatik rechtschreibung rechtschreibfehler ortografía "
        "ortografia gramática orthographe grammaire ponctuation tippfehler kommas zeichensetzung "
        "орфографию ошибки ошибок пунктуацию помилки грамматику опечатки правопис"
    ),
    "rename": (
        "rename renamed renames renaming replace replaced replaces replacing substitute swap "
        "reorder sort alphabetize indent indentation reindent reformat reformatted format "
        "formatting uppercase lowercase capitalize umbenennen ersetze ersetzen benenne renombra "
        "reemplaza renomme remplace remplacez substitua sostituisci formatiere formatea"
    ),
    "change": (
        "change changes changed changing modify modified modifying modifies update updated updates "
        "updating edit edits edited editing refactor refactored refactoring adjust apply applied "
        "bump migrate convert switch move drop delete remove removed removing strip "
        "deduplicate insert append prepend inline simplify clean cleanup tidy optimize "
        "optimise improve ändere ändern entferne passe aktualisiere cambia modifica elimina quita "
        "actualiza cambiar modifie modifiez supprime changez remplacer mude altere remova rimuovi "
        "aggiorna zmień usuń değiştir verander wijzig"
    ),
    "add": (
        "add adds added adding make makes use using support allow allows handle handles ensure set "
        "enable disable raise increase reduce reverse avoid let keep put include skip check mark "
        "don't instead also now füge hinzu ergänze benutze añade agrega usa haz ajoute ajoutez "
        "adicione adiciona aggiungi dodaj ekle voeg"
    ),
    "rewrite": (
        "rewrite rewritten rewrites rephrase reword reworded paraphrase paraphrased paraphrasing "
        "polish shorten shorter condense longer formal politer polite friendlier professional "
        "concise tone style umschreiben formuliere kürze kürzer umformulieren reescribe reformula "
        "acorta reformule réécris réécrivez raccourcis reescreva riscrivi przepisz переформулируй "
        "сократи"
    ),
    "extract": (
        "verbatim quote quoted repeat copy exactly reproduce redact anonymize anonymise mask masked "
        "fill filled template placeholder placeholders blank blanks wörtlich zitiere textual literal"
    ),
    "whole": (
        "full whole entire complete everything unchanged rest untouched rewritten return returned "
        "output returns only back again completely version vollständig ganze gesamten unverändert "
        "vollständige komplett completo completa entero complet complète entier inteiro intero "
        "полностью целиком повний поверни весь"
    ),
    "translate": (
        "translate translated translation translating übersetze übersetzen übersetzung traduce "
        "traducir traduis traduire traduisez traduza traduci przetłumacz çevir vertaal"
    ),
    "tongue": (
        "english german spanish french italian chinese japanese russian portuguese korean arabic "
        "hindi ukrainian dutch turkish englisch englische deutsche deutsch französisch "
        "inglés español francés anglais français allemand inglese английский англійською"
    ),
    "port": "port ports ported equivalent idiomatic portiere",
    "create": (
        "write writes writing create creates creating generate generates build develop design "
        "produce compose draft produces define come give provide schreibe schreib erstelle erstellen "
        "generiere verfasse skriv kirjoita lav escribe escribir crea crear genera haceme hazme écris écrivez créer "
        "crée rédige génère escreva crie gere scrivi napisz stwórz yaz oluştur schrijf maak"
    ),
    "implement": (
        "implement implements implementing implementation program code coding snippet script "
        "implementiere programmiere programm implementa programa implémente programme implemente "
        "zaimplementuj kod código codice"
    ),
    "tests": (
        "test tests testing unittest unittests pytest jest junit testcase testsuite suite tester "
        "testfälle prueba pruebas testes"
    ),
    "document": (
        "docstring docstrings comment comments documentation javadoc jsdoc hints annotations "
        "annotation typehints logging kommentare kommentar comentarios commentaires"
    ),
    "explain": (
        "explain explains explained explanation describe describes description understand "
        "understanding meaning mean means interpret walk clarify elaborate difference differences walkthrough overview "
        "work works erkläre erklär erklären beschreibe bedeutet unterschied explica explicar "
        "explícame explique expliquez expliquer décris différence explicame spiega wyjaśnij "
        "açıkla leg anlat significa"
    ),
    "summarize": (
        "summarize summarise summary summarized summarization tldr tl;dr gist zusammenfassung "
        "zusammen fasse resume resumen resumir résume résumé résumer resuma riassumi streść özetle "
        "headline title titles keywords hashtags bullet"
    ),
    "judge": (
        "review reviews classify classification categorize category compare comparison analyze "
        "analyse analysis evaluate evaluation rate rank decide predict "
        "sentiment opinion safe better best pros cons trade-offs tradeoffs vulnerable secure "
        "complexity assess critique bewerte vergleiche analysiere compara analiza compare analyse "
        "évalue comparez"
    ),
    "answer": (
        "answer answers question questions tell passage context reply respond response according "
        "based beantworte frage responde pregunta réponds réponse question"
    ),
    "calculate": (
        "calculate compute solve solution probability equation prove sum average percent how-many "
        "total integral derivative berechne löse calcula resuelve calcule résous oblicz many much"
    ),
    "advise": (
        "suggest suggestion suggestions recommend recommendations recommendation advice tips ideas "
        "idea brainstorm plan itinerary ways should help need want think feel examples "
        "vorschläge ideen empfiehl recomienda sugiere ideas conseils idées suggère sugira"
    ),
    "prose": (
        "essay story stories poem haiku limerick song lyrics letter email e-mail mail article blog "
        "post tweet speech paragraph paragraphs joke jokes dialogue screenplay script resume cv "
        "novel chapter slogan tagline ad advertisement recipe report biography bio review speech "
        "rap riddle quiz fairy poetry sonnet gedicht geschichte aufsatz brief witz rezept lied "
        "cuento poema ensayo carta historia chiste receta canción poème histoire lettre dissertation "
        "blague recette chanson conto história redação storia poesia lettera opowiadanie wiersz "
        "hikaye şiir стих рассказ письмо стихотворение эссе сочинение вірш оповідання"
    ),
    "material": (
        "following below above this these text texts sentence sentences document passage essay "
        "article email paragraph input given attached provided here it's its following: text: "
        "folgenden folgende folgender text satz unten diesen siguiente texto frase oración este "
        "suivant suivante texte phrase ce seguinte seguente testo frasi текст текста тексте "
        "предложение предложении речення следующий наступний poniższy metin"
    ),
    "code-noun": (
        "function functions method methods algorithm algorithms query queries regex regexp api "
        "endpoint endpoints library bash dockerfile makefile loop loops array "
        "arrays struct interface decorator parser compiler variable variables parameter parameters "
        "string strings integer integers boolean file files config repo database recursion "
        "recursive leetcode plugin widget funktion funktionen klasse skript abfrage función "
        "funciones clase arreglo fonction fonctions classe requête função funções funzione funkcja "
        "funkcję fonksiyon funktio ohjelma функцию функция функции скрипт скрипта код кода "
        "программу программа класс запрос алгоритм функцію програму клас linked-list subroutine "
        "callback async middleware schema cronjob webhook iterator goroutine lambda enum tuple formula formulas expression"
    ),
    "thing": (
        "class classes component components module package app application website webpage "
        "object objects int repository bot game games server "
        "pipeline workflow linked tree program programs button db chatbot "
        "calculator model page webseite seite página page aplicación juego jeu site"
    ),
    "language": (
        "python python3 javascript typescript java c++ c# cpp rust golang go ruby php kotlin swift "
        "sql mysql postgres postgresql sqlite html css scss bash haskell scala perl lua matlab julia "
        "verilog vhdl react vue angular svelte django flask fastapi numpy pandas pytorch tensorflow "
        "powershell nodejs node.js jquery vba tkinter sqlalchemy kubectl ffmpeg awk sed "
        "elixir erlang clojure lisp prolog fortran cobol assembly arduino solidity graphql terraform "
        "kubernetes docker nginx ansible cmake pygame selenium pyspark dart flutter android ios "
        "js питоне питон python3.11 ecmascript es6 objective-c"
    ),
    "format": "json yaml toml excel latex xml csv markdown format jsonl columns",
    "tool": "linux unix git terminal shell command commands cli docker kubernetes ubuntu windows powershell ssh aws azure",
    "commit": "commit changelog diff pull pr merge release",
    "question": (
        "what why how who when where which whose whom what's who's how's was wie warum wieso wer "
        "wann wo welche welcher welches gibt qué que cómo quién cuándo cuál dónde cuáles pourquoi "
        "comment quel quelle quels quelles qui quand où est-ce qual quais quando onde quem perché "
        "cosa chi dove jak dlaczego kto kiedy nasıl neden nedir hoe waarom wat что как почему кто "
        "когда где какой какая какие сколько зачем чем який яка які чому як хто коли скільки чи "
        "про хіба ما كيف لماذا هل من متى"
    ),
    "could": (
        "is are can could does do did should would will was were has kann können kannst ist sind "
        "puedes podrías es peux pouvez pourriez-vous pode potresti può можешь можно можеш"
    ),
    "chatter": (
        "hi hello hey thanks thank thx bye please love feel sorry hola gracias bonjour merci hallo "
        "danke ciao grazie привет спасибо привіт дякую oi olá obrigado ok okay yes no sure yo lol "
        "tell me my i i'm you your"
    ),
    "pretend": (
        "imagine pretend act roleplay role persona suppose conversation interview stell imagina "
        "imaginez"
    ),
    "pick": "extract find list identify name determine detect spot locate count recognize output label tag",
    "hands-off": "anything nothing yet coding without no not before don't touch new",
    "continue": "continue finish completion autocomplete cursor missing rest-of infill middle",
}

_STEMS: Mapping[str, str] = {
    "fix": "corri korri испра випра behob berich poraw popra coreg debug repar",
    "grammar": "proof gramm orthog грамм орфог корек коррек вичит вычит",
    "rename": "renam repla ersetz reemp rempl renom замен переи замін refor forma umben",
    "change": (
        "modif updat chang refac refak actua aktua cambi verän ander elimi suppr entfe удали "
        "видал измен зміни отфор відре отред refat оптим додай"
    ),
    "add": "añadi agreg ajout ajoút добав доповн füg ergän adici aggiu",
    "rewrite": "rewri refor umfor reesc réécr refor перепи перефр сокра parap vereinf raccou acort",
    "extract": "verba wörtl anony",
    "translate": "trans übers tradu перев перек vertaa przet",
    "create": (
        "schre erste verfa escri crear écriv écris crée napis напиш созда склад створ "
        "придум приду сочин зроби сдела rédig escre"
    ),
    "implement": "imple реали реалі запро",
    "language": "питон пайто python джава",
    "tests": "testf тесты тести",
    "explain": "expla expli erklä besch descr décri объяс опиши поясн розка расск spieg разъя",
    "summarize": "summa zusam résum riass перес резюм подсу стисл",
    "judge": "analy anali bewer vergl évalu сравн порів оцени оціни анали аналі",
    "answer": "beant respo répon ответ відпо",
    "calculate": "calcu berec посчи вычис реши обчис решит розв'",
    "advise": "sugge recom empfi sugie посов порад предл запро",
}

GLYPHS: Mapping[str, str] = {
    "修复": "fix", "修正": "fix", "改正": "fix", "更正": "fix", "纠正": "fix", "訂正": "fix",
    "直して": "fix", "バグ": "fix", "错误": "fix", "错别字": "grammar", "誤り": "grammar",
    "語法": "grammar", "语法": "grammar", "校对": "grammar", "校正": "grammar", "文法": "grammar",
    "誤字": "grammar", "고쳐": "fix", "수정": "fix", "맞춤법": "grammar", "오류": "fix",
    "替换": "rename", "重命名": "rename", "改名": "rename", "置き換え": "rename", "変数名": "rename",
    "바꿔": "rename", "格式化": "rename",
    "修改": "change", "更改": "change", "变更": "change", "変更": "change", "削除": "change",
    "删除": "change", "去掉": "change", "更新": "change", "リファクタ": "change", "重构": "change",
    "优化": "change", "改成": "change", "改为": "change", "변경": "change", "삭제": "change",
    "添加": "add", "加上": "add", "追加": "add", "增加": "add", "추가": "add",
    "改写": "rewrite", "重写": "rewrite", "书き直": "rewrite", "書き直": "rewrite",
    "言い換え": "rewrite", "润色": "rewrite", "缩短": "rewrite", "短く": "rewrite", "丁寧": "rewrite",
    "다듬": "rewrite", "抽出": "extract", "提取": "extract", "照抄": "extract", "原文": "extract",
    "完整": "whole", "全文": "whole", "全部": "whole", "全体": "whole", "そのまま": "whole",
    "不要改": "whole", "전체": "whole", "返回": "whole", "出力して": "whole",
    "翻译": "translate", "翻譯": "translate", "翻訳": "translate", "번역": "translate",
    "写一": "create", "编写": "create", "生成": "create", "创建": "create", "帮我写": "create",
    "写个": "create", "写出": "create", "書いて": "create", "作成": "create", "作って": "create",
    "써줘": "create", "작성": "create", "만들어": "create", "寫": "create",
    "实现": "implement", "实作": "implement", "実装": "implement", "プログラム": "implement",
    "程序": "implement", "编程": "implement", "구현": "implement", "코드": "implement",
    "代码": "implement", "コード": "implement", "脚本": "implement", "スクリプト": "implement",
    "单元测试": "tests", "测试用例": "tests", "テスト": "tests", "테스트": "tests",
    "注释": "document", "コメント": "document", "主석": "document", "주석": "document",
    "解释": "explain", "说明": "explain", "説明": "explain", "介绍": "explain", "설명": "explain",
    "区别": "explain", "違い": "explain", "意思": "explain", "解説": "explain",
    "总结": "summarize", "概括": "summarize", "摘要": "summarize", "要約": "summarize",
    "요약": "summarize", "まとめ": "summarize",
    "分析": "judge", "评价": "judge", "比较": "judge", "評価": "judge", "比較": "judge",
    "分类": "judge", "分類": "judge", "비교": "judge", "回答": "answer", "答え": "answer",
    "計算": "calculate", "计算": "calculate", "建议": "advise", "推荐": "advise", "アイデア": "advise",
    "おすすめ": "advise", "추천": "advise", "提案": "advise",
    "文章": "prose", "故事": "prose", "诗": "prose", "詩": "prose", "邮件": "prose", "メール": "prose",
    "物語": "prose", "小説": "prose", "作文": "prose", "论文": "prose", "이야기": "prose",
    "以下": "material", "下面": "material", "这段": "material", "次の": "material", "다음": "material",
    "この": "material", "函数": "code-noun", "関数": "code-noun", "함수": "code-noun",
    "クラス": "code-noun", "算法": "code-noun", "アルゴリズム": "code-noun", "网页": "code-noun",
    "查询": "code-noun", "クエリ": "code-noun", "变量": "code-noun", "数据库": "code-noun",
    "什么": "question", "怎么": "question", "如何": "question", "为什么": "question",
    "为何": "question", "谁": "question", "吗": "question", "哪": "question", "几": "question",
    "何": "question", "なぜ": "question", "どう": "question", "誰": "question", "ですか": "question",
    "ますか": "question", "でしょうか": "question", "무엇": "question", "왜": "question",
    "어떻게": "question", "你好": "chatter", "谢谢": "chatter", "こんにちは": "chatter",
}  # fmt: skip


def _by_word(lists: Mapping[str, str]) -> dict[str, str]:
    """word → concept; of a word in two lists the first counts."""
    found: dict[str, str] = {}
    for concept, words in lists.items():
        for word in words.split():
            found.setdefault(word, concept)
    return found


CONCEPTS: Mapping[str, str] = {
    "fix": "asks to fix",
    "grammar": "asks to proofread",
    "rename": "asks to replace or reformat",
    "change": "asks to change",
    "add": "asks to add",
    "rewrite": "asks to reword",
    "extract": "asks to copy or fill in",
    "whole": "wants the whole of it",
    "translate": "asks to translate",
    "tongue": "names a human language",
    "port": "asks to port",
    "create": "asks to write",
    "implement": "asks for code",
    "tests": "asks for tests",
    "document": "speaks of comments or types",
    "explain": "asks to explain",
    "summarize": "asks to summarize",
    "judge": "asks to judge",
    "answer": "asks for an answer",
    "calculate": "asks to calculate",
    "advise": "asks for advice",
    "pick": "asks to find or list",
    "prose": "names a kind of text",
    "material": "speaks of a given text",
    "code-noun": "names a part of a program",
    "thing": "names a thing to build",
    "language": "names a programming language",
    "format": "names a data format",
    "tool": "names a tool or system",
    "commit": "speaks of a commit",
    "question": "asks a question",
    "could": "asks whether",
    "chatter": "small talk",
    "pretend": "asks to play a role",
    "hands-off": "says what not to do",
    "continue": "asks to complete",
}
"""Each concept as it stands in an explanation."""

WORDS = _by_word(_WORDS)
_KNOWN = {(word[:STEM_CHARS], concept) for word, concept in WORDS.items()}
STEMS = {
    stem: concept
    for stem, concept in _by_word(_STEMS).items()
    if not any(known == stem and other != concept for known, other in _KNOWN)
}
"""Without those that a known word of another concept begins with."""
