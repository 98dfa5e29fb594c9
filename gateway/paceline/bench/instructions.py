"""Instructions to train the classifier on, written for the project: what is asked for × of what.

Each list holds one instruction a line. `Asked` says what there is to work on and which classes are
right; `classify_training` puts instructions and materials together in the shapes that callers use.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """Instructions of one kind.

    `of` is what they work on: code, a stub to complete, a diff, prose, nothing, or what the model
    itself wrote before ("own code", "own prose", "own edit").
    """

    of: str
    acceptable: tuple[str, ...]
    lines: str

    @property
    def instructions(self) -> list[str]:
        return [line for line in self.lines.strip().splitlines() if line]


_EDIT_CODE = """
Fix the bug in this function.
Fix the off-by-one error and give me the whole file back.
This crashes when the list is empty. Please fix it.
It throws a NullPointerException for unknown users, fix that.
The result is wrong for negative numbers. Correct it.
Something is broken here, repair it and return the full code.
The tests fail with this version. Make them pass.
Debug this and output the corrected code.
Find and fix all errors in the program below.
does not compile, fix please
Resolve the lint warnings without changing behaviour.
Rename the parameter n to count everywhere.
Rename the class to Account. Return the complete file.
Replace the print calls with logging.
Replace tabs with four spaces.
Refactor this to use early returns.
Refactor the nested loops into a helper function.
Make this code simpler; it must do the same.
Clean this up a bit, same behaviour.
Add type hints.
Add type annotations to all functions, leave everything else as it is.
Add a docstring to every function.
Add comments that explain each step, do not change the code.
Add error handling around the network call.
Add a check that the input is not empty.
Add a parameter timeout with a default of 30 seconds.
Add logging to the main function and show the whole file.
Remove the debug output.
Remove unused imports.
Remove the deprecated option and everything that uses it.
Delete the last method. Keep the rest unchanged.
Change the default port to 9000.
Change the return type to Optional[int].
Update the version number to 2.1.0 and return the file.
Update the code so that it also handles strings.
Modify the loop to skip values below zero.
Modify the function to return a tuple of both values.
Make the method static.
Make it async.
Make the search case insensitive.
Convert the callbacks to async/await, same file.
Convert var to const or let where possible.
Use a context manager for the file.
Use f-strings instead of format.
Sort the imports.
Sort the keys alphabetically and print the whole document.
Reformat with two spaces per level.
Format this code according to PEP 8.
Move the constants to the top of the file.
Swap the two arguments.
Set the log level to debug in this config.
Return the same code with all strings in single quotes.
Optimize this function but keep its signature.
Make this thread safe and return the updated class.
Apply the review comments: no globals, no magic numbers.
Apply the following change to the file: raise the limit to 100.
Now apply the same change to this file.
Here is the file. Increase the retry count to five and print it in full.
Inline the variable tmp.
Extract the constant 3600 into SECONDS_PER_HOUR.
Handle the case where the key is missing.
Avoid the second lookup.
Do not shadow the builtin name.
Drop support for Python 2
Bump the timeout
Fix race condition in worker shutdown
Fix spelling of option in help text
Fix wrong status code for missing users
Use the new client API instead of the old one
Allow empty names
Ignore invalid inputs and return None for them.
Support inputs of different length.
Ensure the function raises ValueError for negative numbers.
Disable caching for admin pages
Rename helper to something that says what it does
Don't log passwords
Return early when there is nothing to do
Increase buffer size to 4096
Use double quotes
Correct the indentation.
The variable name is misleading, call it total_price.
The last line is not used.
There should be a limit of ten entries.
It should also accept a list.
The function should return an empty dict instead of None.
Make sure the connection is closed at the end.
Show me the whole corrected program.
I made a mistake somewhere, send the fixed version.
Can you spot the mistake and correct it?
Could you please add input validation to this?
Please make this code more readable, but keep the names.
Korrigiere den Fehler in diesem Code.
Benenne die Variable in anzahl um und gib die ganze Datei zurück.
Füge Typannotationen hinzu.
Ersetze print durch logging, sonst nichts ändern.
Entferne die unbenutzten Importe.
Corrige el error en esta función.
Cambia el nombre de la variable y devuelve el archivo completo.
Agrega comentarios a este código.
Elimina las líneas de depuración.
Corrige le bug dans ce code.
Renomme la variable et renvoie le fichier complet.
Ajoute une gestion des erreurs à cette fonction.
Remplace les tabulations par des espaces.
Corrija o erro neste código e devolva tudo.
Adicione tipos a esta função.
Correggi l'errore in questo codice.
Исправь ошибку в этом коде.
Переименуй переменную и верни весь файл.
Добавь обработку ошибок в эту функцию.
Убери лишние комментарии, остальное не меняй.
Виправ помилку в цій функції.
Popraw błąd w tym kodzie.
修复这段代码中的错误。
把变量名改成 count，返回完整代码。
给下面的函数添加注释，不要改动其他内容。
重构这段代码，保持功能不变。
このコードのバグを修正してください。
変数名を total に変更して、ファイル全体を出力してください。
この関数に型ヒントを追加してください。
이 코드의 버그를 고쳐 주세요.
변수 이름을 바꿔서 전체 코드를 출력해 줘.
"""

_CODE_OF_CODE = """
Write unit tests for this function.
Write tests that cover the edge cases of the code above.
Generate a pytest suite for the class below.
Create a test file for this module with at least five test cases.
Give me jest tests for this component.
Write a property-based test for it.
Please add a test class for the service below, in its own file.
Translate this code to Rust.
Translate this function into JavaScript.
Convert this script to Go.
Port this to TypeScript.
Port it to C++, idiomatic please.
Rewrite this in Kotlin.
Rewrite the following program in Haskell.
How would this look in Ruby?
Convert this Python code to Java.
Turn this pseudo code into Python.
Give me the equivalent in Swift.
Write a client for this API.
Write a command line tool that uses this class.
Write an example program that calls these functions.
Write a new module that reads this config format.
Generate a SQL schema for these classes.
Write a SQL query over these tables: the ten best customers of last year.
Write a Dockerfile for this application.
Create an HTML form for this data structure.
Generate a TypeScript interface for this JSON.
Write a JSON schema for this document.
Write a migration that creates this table.
Write a benchmark for it.
Implement an alternative version that uses recursion.
Solve the same problem with dynamic programming.
Write a mock for this interface.
Create a REST endpoint for this model.
Create a new class that implements this interface. New file, do not touch this one.
Schreibe Unit-Tests für diese Funktion.
Übersetze diesen Code nach Rust.
Escribe pruebas unitarias para esta función.
Traduce este código a JavaScript.
Écris des tests unitaires pour cette fonction.
Traduis ce code en Go.
Escreva testes para esta função.
Traduza este código para Java.
Напиши юнит-тесты для этой функции.
Перепиши этот код на Go.
Напиши тести для цього класу.
为下面的函数编写单元测试。
把这段代码翻译成 Java。
用 Go 重新实现这个算法。
この関数の単体テストを書いてください。
このコードを Rust に翻訳してください。
이 함수의 단위 테스트를 작성해 줘.
"""

_CODE_OF_STUB = """
Implement the same algorithm in C#.
Complete this function.
Complete the code below.
Finish the implementation.
Implement the body of this function.
Implement the missing method.
Write the body of the function according to its docstring.
Continue the following program.
Write what belongs at the marker and nothing else.
Complete the following Java method.
Fill in the missing part between the two blocks. Answer with the missing code only.
Solve this: implement the function so that the examples hold.
Vervollständige diese Funktion.
Completa la siguiente función.
Complète cette fonction.
"""

_CHAT_OF_DIFF = """
Can this change break anything?
Review this code and tell me what you would do differently.
Review this pull request.
List the risks of this patch.
Compose a commit message for these edits.
A short commit title, nothing else.
and the commit message?
Write a changelog entry for this change.
Write a pull request description for these changes.
What could be the reason for this change?
Schreibe eine Commit-Nachricht für diesen Diff.
Describe this change in one line.
Review this diff.
Explain this patch.
What does this commit do?
Summarise the diff for the release notes.
Which files and functions are touched?
Name the author's intention.
Is anything missing in this patch?
Write a commit message.
One-line commit message please
Suggest a title for this pull request.
Erkläre diesen Diff.
Mensaje de commit para este cambio
Message de commit pour ce diff
Напиши сообщение для коммита.
为这个改动写一条提交信息。
このdiffのコミットメッセージを書いてください。
"""

_CHAT_OF_CODE = """
Explain this code.
Explain what this function does, step by step.
What does this function do?
What does this code print?
What is the time complexity of this?
Describe the code in two sentences.
Write a short description of this function in plain English.
Summarize what this module does.
Why does this return None?
Why is this so slow?
Is this thread safe?
Is there a security problem in this code?
What could go wrong here?
How would you approach adding a cache here? No code yet.
Do not change anything. Just tell me where the bug is.
No code yet, only the pros and cons.
What is the purpose of the second loop?
Which design pattern is used here?
Write a README introduction for this project.
Suggest a better name for this function.
Rate the readability of this code from 1 to 10.
What would a beginner find hard to understand here?
Compare these two implementations.
Which of the two versions is faster and why?
Explain the error message I get from this.
In which language is this written?
Does this handle unicode correctly?
Can this ever loop forever?
Walk me through this line by line.
Tell me in one paragraph what this does.
Put into plain words what happens here.
Erkläre diesen Code.
Was macht diese Funktion?
Explica qué hace este código.
¿Cuál es la complejidad de esta función?
Explique ce code.
Que fait cette fonction ?
Explique o que este código faz.
Spiega questo codice.
Объясни, что делает этот код.
Почему это работает так медленно?
Поясни, що робить ця функція.
解释一下这段代码。
这个函数的时间复杂度是多少？
このコードを説明してください。
この関数は何をしますか？
이 코드가 무엇을 하는지 설명해 줘.
"""

_EDIT_PROSE = """
Proofread this text.
Proofread the following and return the corrected text only.
Proofread and return everything, also what is correct already.
Correct the spelling mistakes.
Correct the grammar of this paragraph.
Fix the grammar.
Fix typos and punctuation, leave the wording alone.
Fix spelling only.
Please correct all mistakes in the text below and give it back in full.
Copy-edit this letter.
Check the spelling and return the corrected version.
Edit the following text for grammar and punctuation.
Edit this paragraph lightly.
Replace all names with initials.
Replace every date with [DATE] and return the rest unchanged.
Anonymize this message.
Redact phone numbers and addresses.
Replace the placeholders with the values given.
Fill in the template with name Anna Berg and date 3 May 2024.
Fill in the blanks and return the complete text.
Replace "company" by "organisation" everywhere.
Change British spelling to American spelling.
Change the tense from present to past.
Change all headings to title case.
Convert the text to lower case.
Remove all line breaks.
Remove the second sentence.
Remove the links from this text and keep everything else.
Delete the last paragraph and return the others.
Add commas where they are missing.
Add a closing line to this email and return the whole email.
Insert the word "approximately" before each number.
Update the year to 2025 in this notice.
Format this list as markdown, keep the words.
Turn this list into bullet points without changing the text.
Repeat the text below exactly.
Say the text again, word by word.
Copy the following text without changes.
Extract all sentences that contain a number, verbatim.
Quote the passage that speaks of money.
Return the text with all quotes turned into double quotes.
Break this text into paragraphs without changing any word.
Put the sentences of this text in the right order.
Sort these lines alphabetically.
Remove duplicate lines.
Correct the transcription errors in this dictation.
There are mistakes in this text, correct them
Rewrite the text with the spelling corrected.
Korrigiere die Rechtschreibung in diesem Text.
Korrigiere Grammatik und Zeichensetzung und gib den ganzen Text zurück.
Verbessere die Fehler in diesem Brief, sonst nichts ändern.
Ersetze alle Namen durch NAME.
Bitte Korrektur lesen.
Corrige la ortografía de este texto.
Corrige los errores gramaticales y devuelve el texto completo.
Revisa y corrige este párrafo.
Corrige les fautes d'orthographe.
Corrigez la grammaire de ce texte et renvoyez-le en entier.
Relis et corrige ce courriel.
Corrija a gramática deste texto.
Corrige os erros e devolve o texto inteiro.
Correggi gli errori in questo testo.
Исправь ошибки в этом тексте.
Проверь орфографию и пунктуацию, верни весь текст.
Отредактируй текст, не меняя смысла.
Замени все имена на инициалы.
Виправ усе, що в цьому тексті написано не так.
Перевір правопис і поверни весь текст.
Відредагуй цей лист.
Вичитай текст, виправ граматику.
Popraw błędy w tym tekście.
Corrigeer de spelling in deze tekst.
Metindeki yazım hatalarını düzelt.
صحح الأخطاء في هذا النص.
改正下面文章中的错别字。
请校对这段文字，返回完整文本。
修正语法错误，其他不要改。
次の文章の誤字を直してください。
以下の文章を校正して、全文を出力してください。
文法の誤りを訂正してください。
다음 글의 맞춤법을 고쳐 주세요.
"""

_EITHER_PROSE = """
Rewrite this more politely.
Paraphrase this.
Rephrase the following sentence.
Make this shorter.
Make this sound more professional.
Rewrite this for a younger audience.
Improve the style of this paragraph.
Simplify this text.
Turn this into the passive voice.
Shorten this text to half its length.
Formuliere das höflicher.
Reformula este párrafo.
Reformule cette phrase.
Перефразируй это предложение.
改写这段话，使其更正式。
この文章をもっと丁寧に書き直してください。
"""

_CHAT_OF_PROSE = """
Summarize this.
Summarize the following article in three sentences.
Give me a summary in bullet points.
tl;dr
What is the main idea of this text?
What does the author want to say?
Answer the question based on the text.
According to the passage, when did it begin?
Read the text and answer: who paid for it?
Who is mentioned in this text?
Is this text positive or negative?
Classify the sentiment of this review.
Which category does this article belong to: politics, sports, science?
Does the text support the claim? Answer yes or no.
Translate this to French.
Translate the following text into German.
Translate from English to Spanish:
What does this mean?
Write a title for this article.
Suggest three headlines and some hashtags.
Write a reply to this email.
Write a polite refusal to this message.
Write a short biography from these facts.
Write a review based on these notes.
Continue this story.
Write an ending for it.
Come up with a question that this passage answers.
List the key arguments.
Compare the two points of view.
Explain this paragraph to a child.
What do you think about this?
Rate this essay and give reasons.
Give feedback on this letter.
Is this grammatically correct?
What is the tone of this text?
Extract the names and years as a table.
Name the places in the text as JSON.
Write a poem about this.
What should I answer?
Solve this problem.
How many did he sell in total?
Fasse den Text zusammen.
Worum geht es in diesem Text?
Übersetze das ins Englische.
Schreibe eine Antwort auf diese E-Mail.
Resume este artículo.
¿De qué trata este texto?
Traduce este texto al inglés.
Résume ce texte en deux phrases.
De quoi parle ce texte ?
Traduis en anglais.
Resuma este texto.
Di cosa parla questo testo?
Кратко перескажи этот текст.
О чём этот текст?
Переведи на английский.
Яка головна думка тексту?
Розкажи коротко, що тут написано.
Запропонуй назву для цього тексту.
Переклади англійською.
总结一下这篇文章。
这段话的主要意思是什么？
把下面的文字翻译成英文。
この文章を要約してください。
この文章の主題は何ですか？
次の文章を英語に翻訳してください。
이 글을 요약해 줘.
"""

_TASK_OF_PROSE = """
Given a sentence, name the part of speech of each word.
Given a review, predict how many stars the customer gave.
Given a paragraph, write a question whose answer stands in it.
Here is a passage and a question about it. Reply with the answer alone.
Given these facts, write a short article.
Given a dialogue, guess what the second speaker will do next.
You are given a tweet. Decide whether it is an advertisement.
You are given a statement and a text. Say whether the text supports the statement.
You will be given a headline. Write the first paragraph of the article.
In this task you classify questions by topic.
Identify the named entities.
Identify the speaker's intention.
Find synonyms for the words below.
Find the odd one out.
Find the main characters.
List the events in the order in which they happened.
List all countries that are mentioned.
Extract the ingredients from the recipe.
Extract all place names, separated by semicolons.
Extract the key figures into JSON.
Determine the language of the text.
Determine whether the two sentences mean the same.
Tell me whether this is spam.
Choose the best title from the list.
Label each line as fact or opinion.
Tag the sentence with its emotion.
Count the adjectives.
Rank these by size.
Sort these animals into groups.
Solve the word problem.
Work out the answer step by step.
Guess the profession of the writer.
What could this be called?
Interpret this dream.
Make a list of what is needed for it.
Make a table of the dates and what happened.
Create a quiz about this.
Create three flash cards from these notes.
Provide feedback for the student.
Provide an example for each term.
Write a hook for a video on this topic.
Write a product description from these keywords.
Write a recommendation letter with these achievements.
Write an advertisement for this product.
Write a story that begins with this sentence.
Write a dialogue between the two people.
Describe the chart in words.
Give an argument against this claim.
Give advice to this person.
Predict what happens next.
Suggest a better opening line and say why.
Complete the story.
Finish this paragraph.
Convert these notes to a speech.
Turn these directions into a story for children.
Explain why this joke is funny.
Explain the metaphor.
What would you reply?
What are the arguments of both sides?
Which of these would you choose?
Is the writer happy or angry at the end?
What made her leave?
Does he agree with her?
Who wins?
Where did it happen?
When was it built?
Should I accept this offer?
Answer in one word.
Use only the text to answer.
"""

_TASK_OF_NOTHING = """
Make a grocery list for a week.
Make a timetable for my exams
Provide three arguments for a shorter working week.
Provide insights into the causes of inflation.
Outline the main stages of photosynthesis.
Outline a plan for a charity run.
Compose a travel report about Iceland.
Compose a farewell note for a colleague.
Identify the risks of a new product launch.
List ten hobbies for retired people.
List some good names for a dog
Find a synonym for happy.
Name the parts of a flower.
Rank the largest countries of Europe.
Teach me three words of Finnish.
Teach students how to stay calm before an exam.
Brainstorm games for a school class.
Discuss the role of women in ancient Rome.
Elaborate on the difference between weather and climate.
You are a doctor. A patient complains of headaches. What do you ask?
You are a teacher, give me a lesson on fractions.
Two friends share a bill of 84 dollars, one pays twice as much. How much does each pay?
The price of a coat rises by 10 percent and falls by 10 percent. What is it now?
How many days does she need if she reads 20 pages a day and the book has 300?
In a class of 30, 18 like tea, 15 like coffee and 7 like both. How many like neither?
There are five houses in a row. Who lives in the middle?
Some people ran a race. Anna overtook the second. What is her place?
What part of the body makes insulin
most goals in a season
when did the titanic sink
who sings the song about yesterday
meaning of serendipity
best way to learn spanish
Could you outline the plot of Faust?
Can you recommend a laptop?
Please answer: is water wet?
Analyze how social media changes elections.
Evaluate the effects of tourism on small islands.
Give students tips for group work.
Give me a list of words that rhyme with day.
Come up with search terms for a market study.
Create a checklist for moving house.
Create a template for meeting minutes.
Design a syllabus for a course on world music.
Write a file for a fictional bakery with three sections.
Write a rubric for judging essays.
Write a template for a birthday invitation, with at least 200 words.
Write instructions for assembling a shelf.
Write a note to my future self
Write a press release, do not use the letter z.
Begin with the question itself, then answer: how tall is Mont Blanc?
What does HTML stand for?
What is a class in school terms?
Which jobs need Python?
Explain version control to my grandmother.
What makes a good programmer?
Write an article about the history of Java the island.
Write a joke about programmers.
How did computers change chess?
Give me the pros and cons of microservices
What is an API, in one sentence?
"""

_CODE_OF_NOTHING = """
Write a Python function that checks whether a number is prime.
Write a function to find the longest word in a list of strings.
Write a function in Go which reverses a string.
Write a program that prints the first hundred squares.
Write a Java class for a bank account.
Write a C program that counts words in a file.
Write a SQL query that lists all orders of the last week.
Write a bash script that makes a backup of a folder.
Write a regular expression for phone numbers.
Write a shell one-liner to find the largest files.
Write a Verilog module for a shift register.
Write an R script that plots a histogram.
Write an Excel formula that sums every second row.
Write the HTML syntax for a link that opens in a new tab.
Write code to parse a CSV file.
Write me a little game in JavaScript.
Write a query for the average salary per department.
Write pytest tests for a function that adds two numbers.
write a discord bot in python
Create a web page with a login form.
Create a notepad app in C#.
Create a table users with id, name and email in PostgreSQL.
Create a React hook for dark mode.
Create a GitHub workflow that builds a docker image.
Create a command that shows all open ports on Linux.
Build a todo app with Vue.
Build a web scraper for news headlines.
Make a snake game in HTML and JavaScript.
Make a script that renames photos by date
Make an android app that shows a list
Implement quicksort in Rust.
Implement a trie with insert and search.
Implement a rate limiter in Go.
Implement a stack using two queues.
Implement the sieve of Eratosthenes.
Develop a small REST API in FastAPI.
Design a database schema for a hotel.
Generate a random password in PHP.
Generate a Dockerfile for a Django project.
Give me an example of a decorator in Python.
Give me the code of a binary search in Java.
Give an example of an XML layout for Android.
Show me how to read a JSON file in Node.
Show me a working example of goroutines.
I need a function that converts Celsius to Fahrenheit in JavaScript.
I want a python script which downloads all images of a page.
Can you write a Java program that sorts an array?
Can you code a calculator in Python?
Could you create a CSS animation for a spinner?
How do I sort a dictionary by value in Python?
How can I read a file line by line in Bash?
How to center a div with css?
How do I list all pods with kubectl?
using the aws cli, how do I copy a bucket?
what's the command to find a process by port
python code for fibonacci
binary tree in java
quick sort c++
regex for email
sql delete duplicates
fizzbuzz in go
react counter component
bash loop over files
leetcode two sum python
hello world in rust
pandas groupby example code
You are given an array of integers. Return the length of the longest increasing subsequence.
Given a list of intervals, merge the overlapping ones. Write the solution in Python.
You are given a linked list. Write an algorithm that detects a cycle.
Return a list with all even numbers removed. Use Kotlin.
In Rust: check whether two strings are anagrams.
Use Java. Find the second largest number of an array.
Given two strings, write a function that returns their common letters.
Act as a Linux terminal. I type commands and you reply with the output in a code block. My first command is pwd
Emulate a Python interpreter. First input: print(2**10)
Add support for the new storage service
Add a config option for the proxy
Add a test for the date parser
Add an error class for failed registration
Add tests for the retry policy
Add a script that finds unused translations
Implement delete endpoint for campaigns
Implement the equals operator for Version
Create a form for new tenants
Introduce a base class for exporters
Port the scheduler to asyncio
Verify that invalid tokens are rejected by the API tests
Test that the cache is emptied before shutdown
Support for dark theme in settings page
Solution for problem 12: Highly divisible triangular number
Given two tables, orders and customers, list the customers without an order in SQL.
Given a regular expression task: match all words that begin with a capital.
Generate a regular expression for a licence plate.
Provide an example of a list comprehension.
Provide the LaTeX code for a table with three columns.
Find the CSS for a red border.
Excel formula to count cells with the word yes
Google Sheets formula: if A1 is larger than B1 show win, else lose
Convert this description to a regex: starts with two digits and ends with a letter
Parse the question into a SQL query: which students have no grade?
Demonstrate with a code snippet how an SQL injection works and how to prevent it.
Explain with commented Python code how to compute the mean.
Program a traffic light in Arduino
Code me a login page
Improve my knowledge of loops by writing three small exercises in Java with solutions
Draw a chess board in LaTeX
Escribe el código de una calculadora en html y javascript
Tee Python-skripti, joka nimeää tiedostot uudelleen.
Skriv en funktion i Python som sorterar en lista.
给我一个C++版的二叉树代码
如何用pandas读取csv文件？给出代码
Schreibe eine Python-Funktion, die Primzahlen prüft.
Schreibe ein Programm in Java, das Zahlen sortiert.
Erstelle eine HTML-Seite mit einem Kontaktformular.
Wie lese ich in Python eine Datei zeilenweise ein? Bitte mit Code.
SQL-Abfrage für alle Kunden ohne Bestellung
Escribe una función en Python que calcule el factorial.
Haz un programa en Java que ordene una lista.
Crea una página web con HTML y CSS.
Necesito un script en bash que borre archivos viejos.
¿Cómo leo un archivo CSV en Python?
Crea un modelo en TensorFlow para clasificar imágenes.
Écris une fonction Python qui inverse une chaîne.
Crée un programme en C++ pour trier un tableau.
comment lire un fichier texte en python
Écris une requête SQL pour les clients sans commande.
Escreva uma função em JavaScript para validar CPF.
Crie um programa em Python que leia um arquivo.
Scrivi una funzione in Python che conta le vocali.
Напиши функцию на Python, которая сортирует список.
Напиши скрипт на bash для резервного копирования.
Как на JavaScript сделать кнопку с анимацией?
Создай телеграм бота на Python.
Напиши програму на C++, яка рахує слова.
Napisz funkcję w Pythonie, która odwraca listę.
Python ile dosya okuma kodu yaz
اكتب برنامج بلغة بايثون لحساب المضروب
用Python写一个快速排序。
用 Java 实现一个链表。
写一个SQL查询，找出每个部门工资最高的员工。
帮我写一个爬虫程序。
编写一个函数判断回文字符串。
Pythonで素数を判定する関数を書いてください。
JavaScriptでカウントダウンタイマーを作成してください。
Rustでファイルを読み込むプログラムを書いて
파이썬으로 계산기 프로그램을 만들어 줘.
SQL 쿼리를 작성해 줘: 지난달 주문 수
"""

_CHAT_OF_NOTHING = """
What is the capital of Norway?
Who invented the telephone?
Who painted the Night Watch?
Why do cats purr?
Why is bread sour sometimes?
How do bees find their way home?
How does a heat pump work?
How much water should I drink a day?
How many people live in Iceland?
When did the Roman empire end?
Where do penguins sleep?
Which planet has the most moons?
Is a tomato a fruit?
Are whales fish?
Can dogs eat cheese?
Do plants feel pain?
Should I buy or rent a flat?
What are good exercises for the back?
What is machine learning?
What is the difference between a virus and a bacterium?
What is the difference between TCP and UDP?
What is recursion?
What is a REST API?
What are the advantages of Rust over C++?
What does idempotent mean?
Which programming language should I learn first?
Is Python slower than Java?
Why do people use Docker?
How does garbage collection work in general?
What are some best practices for code review?
Explain quantum computing to a child.
Explain the theory of relativity.
Explain how the stock market works.
Explain the concept of object oriented programming.
Describe the water cycle.
Describe a sunset over the desert.
Tell me a joke.
Tell me about the history of chess.
Tell me something I do not know.
tell me more
Write a poem about the moon.
Write a short story about a lost dog.
Write a letter to a friend who moved away.
Write an essay about freedom.
Write an email to my boss asking for a day off.
Write a song about rain.
Write a blog post about healthy breakfasts.
Write a product description for a wooden chair.
Write a speech for my sister's wedding.
Write a resume for a nurse with ten years of experience.
Write a haiku. Do not use commas.
Write a limerick about a programmer. The word bug must occur twice.
Write two riddles about time, all in capital letters.
Write a cover letter for a job as a software engineer.
Write a riddle in exactly three sentences and end with a postscript.
Create a meal plan for a week.
Create a workout plan for beginners.
Create a slogan for a coffee shop.
Create an outline for a talk about bees.
Create a story in which a robot learns to cook.
Generate ideas for a birthday gift.
Generate a list of ten rare animals.
Give me tips for a job interview.
Give me a recipe for pancakes.
Give three reasons to learn an instrument.
Come up with names for a cat.
Come up with a title for a novel about the sea.
Make a list of things to pack for a hike.
Make up a fairy tale.
Design a weekend trip to Prague.
Plan a garden party for twenty guests.
Compose a melody description for a sad film.
Draft a statement for a small club.
Suggest a good book about history.
Recommend some films for a rainy day.
List the planets in order of size.
Name five rivers in Africa.
Compare tea and coffee.
Discuss the pros and cons of nuclear power.
Analyze the character of Hamlet.
Imagine you are a pirate and describe your day.
Pretend to be a travel guide. Where would you take me first?
Act as an interviewer for a marketing job and ask me questions.
A train leaves at 8 and drives 60 km per hour. When does it arrive after 150 km?
If I have 3 apples and eat one, how many are left?
Tom buys 4 pens for 2 dollars each and sells them for 3. What is his profit?
Solve for x: 3x + 5 = 20
Calculate the area of a circle with radius 4.
Prove that the square root of two is irrational.
What is 17 times 23?
2 + 2
The sum of two numbers is 20 and their difference is 4. Find the numbers.
What is the probability of two sixes in a row?
Classify these animals: dog, eagle, shark.
Is the sentence "He goes home" correct?
Translate to German: good morning
How do you say thank you in Japanese?
Translate: Where is the station?
I feel sad today.
I need a report about health care in Chile
I want to learn to play the guitar. Where do I start?
My neighbour is too loud, what can I do?
Help me decide between two jobs.
Can you help me with my homework?
hi
hello there
hey, how are you
good morning
thanks
thank you very much!
ok
yes please
why?
are you a robot?
what can you do
who are you
weather in Paris tomorrow
capital of France
best pizza in Rome
population of Japan
Find the cheapest flight from Berlin to Rome
Search for a dentist near me
Book a table for two at seven
Turn on the lights in the kitchen
What's the weather like in Oslo?
Convert 5 miles to kilometres
Set a timer for ten minutes
asdf
Was ist die Hauptstadt von Peru?
Warum ist der Himmel blau?
Schreibe ein Gedicht über den Herbst.
Schreibe eine E-Mail an meinen Vermieter.
Gib mir Tipps für ein Vorstellungsgespräch.
Erkläre mir die Relativitätstheorie.
Welche Möglichkeiten habe ich nach dem Studium?
Kannst du mir ein gutes Buch empfehlen?
¿Cuál es la capital de Chile?
¿Por qué lloramos?
Escribe un poema sobre el mar.
Dame ideas para una cena.
Quiero una lista de los mejores libros del siglo.
Hola, ¿cómo estás?
Cuéntame un chiste.
Explícame la fotosíntesis.
Quelle est la capitale du Canada ?
Pourquoi les feuilles tombent-elles ?
Écris un poème sur la pluie.
Donne-moi des idées de cadeau.
Raconte-moi une histoire.
Qual é a capital de Angola?
Escreva um poema sobre o amor.
Perché il mare è salato?
Scrivi una poesia sulla luna.
Столица Канады?
Почему трава зелёная?
Напиши стихотворение о зиме.
Расскажи анекдот.
Как научиться готовить?
Что такое чёрная дыра?
Посоветуй хороший фильм.
Напиши вірш про весну.
Чому небо блакитне?
Порадь цікаву книгу.
Jak nauczyć się gotować?
Napisz wiersz o jesieni.
Bana bir fıkra anlat.
Wat is de hoofdstad van België?
ما هي عاصمة المغرب؟
اكتب قصيدة عن البحر
भारत की राजधानी क्या है?
中国最长的河是哪条？
为什么天空是蓝色的？
写一首关于春天的诗。
请给我写一份学习计划。
推荐几本好书。
什么是机器学习？
日本で一番高い山は何ですか？
春についての俳句を書いてください。
友達を誘うメールを書いてください。
おすすめの本を教えてください。
機械学習とは何ですか？
あなたは有名な作家です。自己紹介してください。
한국의 수도는 어디인가요?
봄에 대한 시를 써 줘.
"""

_CODE_AFTER_CODE = """
now write tests for it
Write unit tests for that.
Can you do the same in Java?
port it to Go
and in Rust?
Now write a client for this API.
Write a main program that uses it.
What about an iterative version in C++?
jetzt bitte mit Unit-Tests
ahora en JavaScript
maintenant en Rust
теперь на Go
再用 Java 写一遍
"""

_EDIT_AFTER_CODE = """
call the function compute instead
add type hints
document it with a docstring
fix it
that fails for empty input
it does not work: index out of range
no, still not right
Still wrong, the last element is missing.
I get TypeError when I run this
give me the whole file
show it again with the change
make it async
make the names shorter
use a set instead
remove the comments
Change the colour to blue.
Modify it to also return the index.
Can you add a limit parameter?
It should ignore case.
without recursion please
print the entire file
try again
It also needs error handling.
Kannst du Kommentare hinzufügen?
Ändere den Namen in summe.
agrega comentarios
cambia el nombre de la función
ajoute des commentaires
corrige l'erreur
добавь комментарии
исправь ошибку
виправ
加上注释
改成递归以外的写法，给我完整代码
コメントを追加してください
変数名を変更してください
"""

_CHAT_AFTER_CODE = """
explain
why?
why is this linear?
What does the second line do?
thanks, that works
How does it work?
Is there a library for that?
which version is faster?
explain the regex
can you explain it to me step by step?
What is the difference to the other approach?
erkläre mir das
¿por qué?
explique la première ligne
объясни
为什么？
なぜですか？
"""

_CHAT_AFTER_PROSE = """
And why is that?
Tell me more about the second point.
What happened then?
Who was the king at that time?
Give me another example.
another one
one more
What if there are three of them?
And how would one solve that?
Explain it in simpler words.
Now write a poem about it.
Write a letter on the same subject.
How old was she?
And in winter?
Can you name a book on that?
Do you remember my name?
Imagine you are her. What would you say?
und warum?
¿y después?
et pourquoi ?
а почему?
还有呢？
もう一つ例を挙げてください。
"""

_EITHER_AFTER_PROSE = """
make it shorter
Shorter please.
Make it more formal.
Now rewrite it in a friendlier tone.
Rewrite your answer without adjectives.
kürzer bitte
más corto
plus court
покороче
再短一点
もっと短くしてください
"""

_EDIT_AFTER_EDIT = """
now make it shorter
also fix the second paragraph
And the commas?
undo the last change
now the same for this one
use British spelling
Keep the first sentence as it was.
one more mistake: the name is wrong
also rename the class
do the same for the other function
and remove the empty lines
noch einmal, aber mit kürzeren Sätzen
ahora hazlo más corto
et maintenant plus court
теперь короче
现在再短一点
もう少し短くして
"""

ASKED = (
    Asked("code", ("edit",), _EDIT_CODE),
    Asked("code", ("code",), _CODE_OF_CODE),
    Asked("stub", ("code",), _CODE_OF_STUB),
    Asked("diff", ("chat",), _CHAT_OF_DIFF),
    Asked("code", ("chat",), _CHAT_OF_CODE),
    Asked("prose", ("edit",), _EDIT_PROSE),
    Asked("prose", ("edit", "chat"), _EITHER_PROSE),
    Asked("prose", ("chat",), _CHAT_OF_PROSE),
    Asked("prose", ("chat",), _TASK_OF_PROSE),
    Asked("nothing", ("chat",), _TASK_OF_NOTHING),
    Asked("nothing", ("code",), _CODE_OF_NOTHING),
    Asked("nothing", ("chat",), _CHAT_OF_NOTHING),
    Asked("own code", ("code",), _CODE_AFTER_CODE),
    Asked("own code", ("edit",), _EDIT_AFTER_CODE),
    Asked("own code", ("chat",), _CHAT_AFTER_CODE),
    Asked("own prose", ("chat",), _CHAT_AFTER_PROSE),
    Asked("own prose", ("edit", "chat"), _EITHER_AFTER_PROSE),
    Asked("own edit", ("edit",), _EDIT_AFTER_EDIT),
)
