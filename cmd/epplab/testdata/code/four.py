# train a small net
epochs = 80
batch_size = 32
for epoch in range(epochs): train(batch_size)
