version 1.0

# Counts the letters of each word in a task of its own, and adds them up in another.
workflow words {
  input {
    Array[String] list = ["gang", "queue", "volcano"]
  }
  scatter (word in list) {
    call count { input: word = word }
  }
  call total { input: numbers = count.letters }
  output {
    Int letters = total.sum
  }
}

task count {
  input { String word }
  command <<< printf '%s' '~{word}' | wc -c >>>
  output { Int letters = read_int(stdout()) }
  runtime { docker: "debian:12" }
}

task total {
  input { Array[Int] numbers }
  command <<< echo $((~{sep="+" numbers})) >>>
  output { Int sum = read_int(stdout()) }
  runtime { docker: "debian:12" }
}
