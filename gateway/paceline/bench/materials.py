"""Code and prose to ask something about: the material of the project's own training prompts."""

from __future__ import annotations

CODE: tuple[tuple[str, str], ...] = (
    (
        "python",
        """def total_price(items, discount=0):
    total = 0
    for item in items:
        total = total + item["price"] * item["amount"]
    print("total", total)
    return total - discount
""",
    ),
    (
        "python",
        '''import json
import os


class Settings:
    """Settings of the application, read from a file."""

    def __init__(self, path):
        self.path = path
        self.values = {}

    def load(self):
        if not os.path.exists(self.path):
            return
        f = open(self.path)
        self.values = json.load(f)

    def get(self, name, default=None):
        return self.values.get(name, default)

    def save(self):
        with open(self.path, "w") as f:
            json.dump(self.values, f)
''',
    ),
    (
        "javascript",
        """function findUser(users, id) {
  for (var i = 0; i <= users.length; i++) {
    if (users[i].id == id) {
      return users[i];
    }
  }
  console.log("not found");
}

module.exports = { findUser };
""",
    ),
    (
        "typescript",
        """export class Cart {
  private items: Item[] = [];

  constructor(private readonly api: Api) {}

  async add(sku: string, amount: number): Promise<void> {
    const item = await this.api.fetchItem(sku);
    this.items.push({ ...item, amount });
  }

  get total(): number {
    return this.items.reduce((sum, item) => sum + item.price * item.amount, 0);
  }
}
""",
    ),
    (
        "go",
        """package store

import (
	"errors"
	"sync"
)

type Store struct {
	mu   sync.Mutex
	data map[string]string
}

func (s *Store) Get(key string) (string, error) {
	s.mu.Lock()
	value, ok := s.data[key]
	if !ok {
		return "", errors.New("no such key")
	}
	s.mu.Unlock()
	return value, nil
}
""",
    ),
    (
        "rust",
        """use std::collections::HashMap;

pub fn count_words(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    counts
}
""",
    ),
    (
        "java",
        """import java.util.*;

public class Queue<T> {
    private final List<T> elements = new ArrayList<>();

    public void push(T element) {
        elements.add(element);
    }

    public T pop() {
        return elements.remove(0);
    }

    public boolean isEmpty() {
        return elements.size() == 0;
    }
}
""",
    ),
    (
        "cpp",
        """#include <iostream>
#include <vector>
using namespace std;

int largest(vector<int> numbers) {
    int best = 0;
    for (int i = 0; i < numbers.size(); i++) {
        if (numbers[i] > best) best = numbers[i];
    }
    return best;
}

int main() {
    cout << largest({3, 9, 2}) << endl;
    return 0;
}
""",
    ),
    (
        "sql",
        """SELECT c.name, SUM(o.amount) AS total
FROM customers c
JOIN orders o ON o.customer_id = c.id
WHERE o.created_at > '2024-01-01'
GROUP BY c.name
ORDER BY total DESC;
""",
    ),
    (
        "yaml",
        """service:
  name: mailer
  port: 8025
  log_level: info
  retries: 3
database:
  host: db.internal
  port: 5432
  user: mailer
  pool_size: 10
features:
  - templates
  - attachments
""",
    ),
    (
        "html",
        """<!DOCTYPE html>
<html lang="en">
<head>
  <title>Orders</title>
  <link rel="stylesheet" href="style.css">
</head>
<body>
  <h1>Your orders</h1>
  <ul id="orders">
    <li class="open">Lamp, 2 pieces</li>
    <li class="sent">Chair, 1 piece</li>
  </ul>
  <button onclick="load()">Load more</button>
</body>
</html>
""",
    ),
    (
        "json",
        """{
  "name": "weather-station",
  "version": "1.4.2",
  "sensors": [
    {"id": 1, "kind": "temperature", "unit": "C"},
    {"id": 2, "kind": "pressure", "unit": "hPa"}
  ],
  "interval_s": 60
}
""",
    ),
    (
        "ruby",
        """class Invoice
  attr_reader :lines

  def initialize(lines)
    @lines = lines
  end

  def total
    lines.map { |line| line.amount * line.price }.sum
  end

  def overdue?(today)
    today > due_on
  end
end
""",
    ),
    (
        "php",
        """<?php
function sendMail($to, $subject, $body) {
    $headers = "From: noreply@example.org";
    if (mail($to, $subject, $body, $headers)) {
        return true;
    }
    return false;
}
""",
    ),
    (
        "bash",
        """#!/bin/bash
for file in *.log; do
  if [ -s "$file" ]; then
    gzip "$file"
    mv "$file.gz" archive/
  fi
done
""",
    ),
    (
        "kotlin",
        """data class Point(val x: Double, val y: Double)

fun distance(a: Point, b: Point): Double {
    val dx = a.x - b.x
    val dy = a.y - b.y
    return Math.sqrt(dx * dx + dy * dy)
}
""",
    ),
)

STUBS: tuple[tuple[str, str], ...] = (
    (
        "python",
        '''from typing import List


def longest_run(values: List[int]) -> int:
    """Return the length of the longest run of equal numbers.

    >>> longest_run([1, 1, 2])
    2
    >>> longest_run([])
    0
    """
''',
    ),
    (
        "java",
        """/**
 * Returns how often the letter occurs in the text.
 * countLetter("banana", 'a') == 3
 */
public static int countLetter(String text, char letter) {
""",
    ),
    (
        "javascript",
        """/**
 * Flattens a nested array.
 * flatten([1, [2, [3]]]) // [1, 2, 3]
 */
function flatten(array) {
""",
    ),
    (
        "go",
        """// isPower tells whether a number is a power of two: isPower(8) == true
func isPower(n int) bool {
""",
    ),
    (
        "ruby",
        """##
# The digits of a number, the first one first.
#
#   digits(123)  # => [1, 2, 3]
def digits(number)
""",
    ),
    (
        "cpp",
        """#include <string>
using namespace std;

/* Return true if the text reads the same in both directions. */
bool isPalindrome(string text) {
""",
    ),
    (
        "perl",
        """use strict;

# Joins the words of a list by spaces.
sub join_words
{
  my ($words) = @_;
""",
    ),
    (
        "csharp",
        """using System;
using System.Collections.Generic;

public class Numbers
{
    /// <summary>Whether both lists hold the same numbers in the same order.</summary>
    public static bool Same(List<int> left, List<int> right)
    {
""",
    ),
    (
        "php",
        """<?php

/**
 * Returns the largest of three numbers.
 */
function largest($a, $b, $c) {
""",
    ),
    (
        "scala",
        """object Numbers extends App {
    /** The squares of the even numbers. */
    def evenSquares(numbers: List[Int]): List[Int] = {
""",
    ),
    (
        "rust",
        """/// Returns the sum of all multiples of three below n.
fn sum_of_threes(n: u64) -> u64 {
""",
    ),
)

DIFF = """--- a/src/mail.py
+++ b/src/mail.py
@@ -12,7 +12,8 @@ class Mailer:
     def send(self, message):
-        self.connection.send(message)
+        if not message.recipients:
+            raise ValueError("a message needs a recipient")
+        self.connection.send(message)
         self.sent += 1
"""

PROSE: tuple[tuple[str, str], ...] = (
    (
        "en",
        "Our town has a small library that was build in 1923 by the workers of the mill. It have "
        "more than ten thousand books, and every tuesday the children comes to hear stories. Last "
        "winter the roof was leaking and the council wanted to close it, but the peoples collected "
        "enough money for the repair.",
    ),
    (
        "en",
        "Dear Mr Hall, I am writing to you because the washing machine I bought last month stop "
        "working after only three weeks. I have called your service two times but nobody have "
        "answered. Please let me now when somebody can come. Best regards, Maria Stone",
    ),
    (
        "en",
        "The new line connects the harbour with the airport in twelve minutes. It was planned for "
        "2018 but opened only this spring, because the tunnel under the river filled with water "
        "twice. The city paid 340 million for it, a third more than was expected. Critics say that "
        "the money would have been better spent on buses; the mayor says that in ten years nobody "
        "will remember the delay.",
    ),
    (
        "en",
        "I bought these headphones for my daughter. The sound is good and they are light, but the "
        "battery lasts four hours instead of ten and after two weeks the left side stopped. The "
        "shop did not answer my letters.",
    ),
    ("en", "She dont like to go to the market on monday because it are to crowded."),
    ("en", "The meeting was moved to thursday, all participants was informed yesterday."),
    (
        "de",
        "Gestern sind wir mit den Zug nach Hamburg gefahren. Das wetter war schlecht und wir haben "
        "den ganzen Tag im Museum verbracht, wo es ein Ausstellung über Schiffe gab. Am abend haben "
        "wir Fisch gegessen und sind müde zurück gefahren.",
    ),
    (
        "es",
        "El sabado fuimos a la playa con mis primos. Hacía mucho calor y el agua estaba fria, pero "
        "nadamos todo el dia. Despues comimos pescado en un restaurante que a mi me gusto mucho y "
        "volvimos a casa muy cansado.",
    ),
    (
        "fr",
        "Hier nous avons visité une vieux château près de la rivière. Le guide nous a raconter "
        "l'histoire de la famille qui y habitais pendant trois siècles. Ensuite nous avons mangés "
        "dans un petit village et nous somme rentrés tard.",
    ),
    (
        "ru",
        "Вчера мы ходили в музей, который находится возле реки. Там было много людей и мы долго "
        "стояли в очереди. Мне понравилась картина где нарисован корабль во время шторма. Потом мы "
        "пили чай и говорили о том что увидели.",
    ),
    (
        "uk",
        "Минулого літа ми поїхали в гори. Погода була гарна і ми щодня ходили по стежкам, які "
        "ведуть до озера. Одного разу почався дощ, і нам прийшлось чекати дві години під скелею. "
        "Але ввечері ми сиділи біля вогню і співали.",
    ),
    (
        "zh",
        "上个星期我们去了海边的一个小村子。那里的人很热情，请我们吃了新鲜的鱼。"
        "晚上我们在沙滩上看星星，听老人讲以前的故事。第二天早上下雨了，我们只好坐公共汽车回家。",
    ),
    (
        "ja",
        "先週の土曜日、友達と一緒に山に登りました。天気がよくて、頂上から海が見えました。"
        "お昼に母が作ったおにぎりを食べて、写真をたくさん撮りました。帰りは電車が遅れて、家に着いたのは夜でした。",
    ),
    (
        "ko",
        "지난주에 가족과 함께 바다에 갔습니다. 날씨가 좋아서 하루 종일 수영을 했습니다. "
        "저녁에는 생선을 먹고 바닷가를 걸었습니다. 동생은 조개를 많이 주웠습니다.",
    ),
)

SYSTEMS = (
    "You are a helpful assistant.",
    "You are a senior engineer. Answer shortly.",
    "You are a friendly support agent of a bicycle shop.",
    "Answer in the language of the user.",
    "You help programmers. Use markdown.",
    "You are an expert in every subject; think before you answer.",
)

EDITOR_SYSTEMS = (
    "You change files. Answer with search/replace blocks:\n<<<<<<< SEARCH\nold lines\n=======\n"
    "new lines\n>>>>>>> REPLACE",
    "You are a coding agent. Return a unified diff (---, +++, @@) of the files you change.",
    "You edit code. Output every changed file in full, nothing left out.",
    "Use the apply_patch format: *** Begin Patch, *** Update File: name, *** End Patch.",
    "You are an agent with tools to read and edit the files of a repository.",
)

ANSWERS = ("Ok.", "Understood.", "I have read the files.", "Noted, what should I do?")
