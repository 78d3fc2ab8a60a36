name = input("dataset? ")
