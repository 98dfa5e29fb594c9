"""Common misspellings of English and their corrections, case kept.

A table, not a dictionary: words that are not in it stay as they are, so names and code are safe.
"""

from __future__ import annotations

import re

_TABLE = """
abscence absence; accidently accidentally; accomodate accommodate; accross across; acheive
achieve; adress address; agressive aggressive; allways always; alot a lot; amatuer amateur;
apparant apparent; appologize apologize; appreciatte appreciate; arguement argument; asume assume;
atention attention; athiest atheist; availible available; basicly basically; beacuse because;
beatiful beautiful; beautifull beautiful; becasue because; becuase because; begining beginning;
beleive believe; belive believe; bizzare bizarre; buisness business; calender calendar; carefull
careful; catagory category; cemetary cemetery; certian certain; changable changeable; chekc check;
collegue colleague; comittee committee; comming coming; commited committed; completly completely;
concious conscious; coudl could; curiousity curiosity; definately definitely; definitly
definitely; desparate desperate; differnt different; diffrent different; dilema dilemma; dissapear
disappear; dissapoint disappoint; doesnt doesn't; dont don't; easly easily; ecstacy ecstasy;
embarass embarrass; enviroment environment; equiptment equipment; exagerate exaggerate; excelent
excellent; existance existence; experiance experience; explaination explanation; familar familiar;
finaly finally; folowing following; foriegn foreign; fourty forty; foward forward; freind friend;
fullfil fulfil; futher further; gallary gallery; garantee guarantee; gaurd guard; glamourous
glamorous; goverment government; gramatically grammatically; grammer grammar; greatful grateful;
guarentee guarantee; happend happened; harrass harass; heigth height; heirarchy hierarchy;
helpfull helpful; hopefull hopeful; humourous humorous; hvae have; hygeine hygiene; imediately
immediately; immediatly immediately; importent important; improvment improvement; independant
independent; infomation information; interupt interrupt; intresing interesting; intresting
interesting; irrelevent irrelevant; isnt isn't; jewelery jewellery; jumpd jumped; knowlege
knowledge; langauge language; lauch launch; lazzy lazy; lenght length; liason liaison; libary
library; lisence licence; maintainance maintenance; managment management; manuever manoeuvre;
medcine medicine; mesage message; mesages messages; millenium millennium; mispell misspell;
morgage mortgage; narow narrow; neccessary necessary; necesary necessary; nessesary necessary;
nieghbour neighbour; noticable noticeable; notise notice; nto not; occassion occasion; occured
occurred; occurence occurrence; occuring occurring; offical official; oppurtunity opportunity;
orignal original; paralel parallel; parliment parliament; peice piece; peopel people; percieve
perceive; perfomance performance; persistant persistent; personel personnel; persue pursue;
posession possession; posible possible; potatos potatoes; prefered preferred; presance presence;
privelege privilege; probaly probably; proccess process; professer professor; prolem problem;
pronounciation pronunciation; publically publicly; purchace purchase; quater quarter; questionaire
questionnaire; realy really; reccomend recommend; reciept receipt; recieve receive; recieved
received; recived received; recomend recommend; refered referred; religous religious; remeber
remember; repitition repetition; resistence resistance; responce response; restaraunt restaurant;
retreive retrieve; runing running; rythm rhythm; saftey safety; scedule schedule; sceduled
scheduled; seige siege; sentance sentence; seperate separate; seperated separated; seperately
separately; shedule schedule; shoud should; sieze seize; similiar similar; sincerly sincerely;
speach speech; strenght strength; succesful successful; sucess success; sucessfully successfully;
suprise surprise; surprize surprise; taht that; teh the; tehn then; tendancy tendency; thats
that's; theif thief; thier their; threshhold threshold; thru through; togehter together; tomatos
tomatoes; tommorow tomorrow; tommorrow tomorrow; tomorow tomorrow; tounge tongue; truely truly;
unforseen unforeseen; untill until; usefull useful; usualy usually; vaccum vacuum; valueable
valuable; vegtable vegetable; vehical vehicle; visable visible; waht what; wasnt wasn't; wether
whether; wich which; wierd weird; wierdly weirdly; wiht with; woud would; writting writing; yeild
yield; yuo you
"""
_KNOWN = dict(pair.split(" ", 1) for pair in " ".join(_TABLE.split()).split("; "))
_WORD = re.compile(r"[^\W\d_]+")


def corrected(text: str) -> tuple[str, int]:
    """The text with known misspellings mended, and how many there were."""
    mended = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal mended
        right = _correction(match.group().lower())
        if right is None:
            return match.group()
        mended += 1
        return like(match.group(), right)

    return _WORD.sub(mend, text), mended


def _correction(word: str) -> str | None:
    """The right spelling of a misspelt word or of one with an ending, such as "beleived"."""
    if word in _KNOWN:
        return _KNOWN[word]
    for ending in ("s", "d", "ed", "ly", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and stem in _KNOWN:
            return _KNOWN[stem] + ending
    return None


def like(model: str, word: str) -> str:
    """`word` in the capitals of `model`: all, the first letter, or as it is."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word
